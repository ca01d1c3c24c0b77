"""`pdt chronicle`: write the procedural corpus, its tokenizer, or one document to read."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdt.config import load_config
from pdt.errors import UsageError
from pdt.provenance import atomic_path, new_directory, write_manifest
from pdt.terms import Split

if TYPE_CHECKING:
    from pdt.chronicle import Chronicle
    from pdt.study.recipe import CorpusRecipe

app = typer.Typer(
    help="Fictional history with exact facts, plans and dependencies.", no_args_is_help=True
)

Size = Annotated[str, typer.Option(help="nano, small or canonical.")]
Seed = Annotated[
    int | None,
    typer.Option(help="Another seed, another corpus.", show_default="0, or the study's"),
]
OneSplit = Annotated[Split, typer.Option(help="Splits never share an event.")]
Preset = Annotated[
    str | None, typer.Option(help="Whose tokenizer counts: nano for that size, else canonical.")
]
Dial = Annotated[
    list[str] | None,
    typer.Option("--set", help="One dial, for example bits=[1], lags=[1,2] or coined_share=1."),
]

Study = Annotated[
    str | None, typer.Option(help="A study whose corpus of this split is meant, for example nano.")
]

DOCUMENTS = "documents.jsonl"
COUNT = 100


@app.command()
def write(
    out: Annotated[Path, typer.Option(help="A new directory.")],
    count: Annotated[
        int | None,
        typer.Option(min=1, help="Documents to write.", show_default=f"{COUNT}, or the study's"),
    ] = None,
    size: Size = "nano",
    seed: Seed = None,
    split: OneSplit = Split.TRAIN,
    preset: Preset = None,
    dial: Dial = None,
    study: Study = None,
    start: Annotated[int, typer.Option(min=0, help="Index of the first document.")] = 0,
    bundles: Annotated[
        bool, typer.Option("--bundles", help="Also write raw sources for `pdt corpus build`.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write taught documents, one per line, ready for `pdt record compile`."""
    from pdt.chronicle.bundles import SourceWriter

    corpus = _corpus(study, split, size, dial)
    chronicle = _chronicle(corpus, size, seed, split, preset, dial)
    count = count or (corpus.count if corpus else COUNT)
    coined = 0
    with new_directory(out) as work:
        sources = SourceWriter(work, load_config("canonical").sources.splits)
        with (work / DOCUMENTS).open("w", encoding="utf-8") as file:
            for number, document in enumerate(chronicle.documents(count, start=start)):
                file.write(document.taught.model_dump_json() + "\n")
                coined += any(d.coined for d in document.taught.answer.dependencies)
                if bundles:
                    sources.add(document)
                if number % 1000 == 999:
                    print(f"{number + 1} of {count} documents", file=sys.stderr)
        if bundles:
            sources.close()
        config = {
            "seed": chronicle.seed,
            "split": str(split),
            "start": start,
            "count": count,
            "dials": chronicle.dials.model_dump(mode="json"),
        }
        write_manifest(work, made_by="pdt chronicle write", config=config)
    summary = {"out": str(out), "documents": count, "with_coined_choice": coined}
    print(
        json.dumps(summary)
        if as_json
        else f"{count} document{'' if count == 1 else 's'} in {out / DOCUMENTS}, {coined} with a "
        "coined choice."
    )


@app.command()
def show(
    index: Annotated[int, typer.Argument(min=0, help="Which document.")] = 0,
    size: Size = "nano",
    seed: Seed = None,
    split: OneSplit = Split.TRAIN,
    preset: Preset = None,
    dial: Dial = None,
    study: Study = None,
) -> None:
    """Print one document: source, request, plans, sections in reading order, dependencies."""
    corpus = _corpus(study, split, size, dial)
    taught = _chronicle(corpus, size, seed, split, preset, dial).document(index).taught
    answer = taught.answer
    print(f"{taught.article.text}\n\n>>> {answer.request}")
    for lane in answer.lane_at_position:
        outline = " ".join(node.objective for node in answer.plans[lane].nodes)
        print(f"\n--- lane {lane}: {outline}\n\n{answer.sections[lane].text}")
    for link in answer.dependencies:
        what = f"{link.coined.entropy_bits:g} bits" if link.coined else f"fact {link.fact_id}"
        print(f"\nlane {link.owner.lane} -> lane {link.receiver.lane}: ", end="")
        print(f"{link.owner.quote.text!r} -> {link.receiver.quote.text!r} ({what})")


@app.command()
def tokenizer(
    out: Annotated[Path, typer.Option(help="The tokenizer.json to write.")],
    name: Annotated[str, typer.Option(help="nano or nano-2.")] = "nano",
) -> None:
    """Make a tokenizer of the package from Chronicle's own words; the same bytes every time."""
    from pdt.chronicle.vocabulary import KINDS, make_tokenizer

    if name not in KINDS:
        raise UsageError(f"There is no tokenizer {name!r}.\nTokenizers: {', '.join(KINDS)}.")

    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is not a directory.\nMake it, or choose another --out.")
    text = make_tokenizer(name, most=load_config(name).trunk.shape.vocabulary)
    with atomic_path(out) as partial:
        partial.write_text(text, encoding="utf-8")
    print(f"{len(json.loads(text)['model']['vocab'])} pieces in {out}")


def _corpus(
    study: str | None, split: Split, size: str, dial: list[str] | None
) -> "CorpusRecipe | None":
    """What a study's recipe says of its corpus of this split."""
    from pdt.study.recipe import load_recipe

    if study is None:
        return None
    if dial or size != "nano":
        raise UsageError("--study has the dials of its recipe.\nLeave out --size and --set.")
    for corpus in load_recipe(study).corpora.values():
        if corpus.split is split:
            return corpus
    raise UsageError(f"The study {study} has no {split} corpus.\nChoose another --split.")


def _chronicle(
    corpus: "CorpusRecipe | None",
    size: str,
    seed: int | None,
    split: Split,
    preset: str | None,
    dial: list[str] | None,
) -> "Chronicle":
    from pdt.chronicle import Chronicle
    from pdt.chronicle.dials import turn_dials
    from pdt.chronicle.meter import Meter
    from pdt.tokenizer import load_tokenizer

    dials = turn_dials(size, corpus.dials if corpus else dial or ())
    if seed is None:
        seed = corpus.seed if corpus else 0
    config = load_config(preset or ("nano" if dials.size == "nano" else "canonical"))
    return Chronicle(seed, split, dials, Meter(load_tokenizer(config.records.tokenizer)))
