"""`pdt record`: compile taught documents, check them, look at them, verify what was compiled."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset
from pdt.config import PdtConfig, edit_config, load_config
from pdt.errors import ContractBroken, UsageError

app = typer.Typer(help="Training records: the data contract of §4.", no_args_is_help=True)

Inputs = Annotated[
    list[Path], typer.Argument(help="Files or folders of taught documents (.jsonl, .json).")
]


@app.command("compile")
def compile_(
    inputs: Inputs,
    out: Annotated[Path, typer.Option(help="A new directory for the shards.")],
    preset: Preset = "nano",
    config: ConfigFile = None,
    set_: Overrides = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not change.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the shards that are whole.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Turn taught documents into Parquet shards; a document that breaks a rule is left out."""
    from pdt.records.corpus import compile_corpus
    from pdt.records.report import ShardReport

    settings = load_config(preset, file=config, overrides=set_ or ())
    start, done = time.monotonic(), 0
    with _progress("compiling") as advance:

        def count(report: ShardReport) -> None:
            nonlocal done
            done += report.documents
            advance(done)

        corpus = compile_corpus(
            inputs, out, settings, workers=workers, resume=resume, progress=count
        )
    rate = done / max(time.monotonic() - start, 1e-9)
    result = {
        "out": str(out),
        **corpus.model_dump(mode="json", include=_COUNTS),
        "shards": len(corpus.shards),
    }
    pace = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    processes = "1 process" if workers == 1 else f"{workers} processes"
    print(f"{done:,} documents, {pace} a second, {processes}", file=sys.stderr)
    _print(result, as_json=as_json)
    if not corpus.records:
        raise ContractBroken(
            f"No document of {len(inputs)} inputs passed its checks.",
            "`pdt record check` lists every broken rule.",
        )


_COUNTS = {"documents", "records", "rejected", "rejections_by_rule"}


@app.command()
def check(
    inputs: Inputs,
    bundles: Annotated[
        Path | None, typer.Option(help="Also hold each article against its bundle under here.")
    ] = None,
    preset: Preset = "nano",
    config: ConfigFile = None,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Hold documents against every rule and list all that is broken; exit 3 if anything is."""
    from pdt.records.checks import check_document
    from pdt.records.inputs import read_documents
    from pdt.teacher.checks import check_bundle
    from pdt.tokenizer import load_tokenizer

    settings = load_config(preset, file=config, overrides=set_ or ())
    tokenizer = load_tokenizer(settings.records.tokenizer)
    documents = broken = 0
    with _progress("checking") as advance:
        for line, document in read_documents(inputs):
            documents += 1
            failures = check_document(document, settings, tokenizer)
            failures += check_bundle(document, bundles) if bundles else []
            broken += bool(failures)
            for failure in failures:
                if as_json:
                    found = failure.model_dump(mode="json", exclude_none=True)
                    print(json.dumps({"where": line.where, **found}, ensure_ascii=False))
                else:
                    print(f"{line.where} {document.record_id} {failure}")
            advance(documents)
    print(f"{documents:,} documents, {broken:,} break a rule", file=sys.stderr)
    if broken:
        raise typer.Exit(3)


@app.command()
def show(
    input: Annotated[Path, typer.Argument(help="A document file or a compiled directory.")],
    id: Annotated[str | None, typer.Option(help="Which record; the first when not given.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page here.")] = None,
    preset: Annotated[
        str, typer.Option(help="Preset for a document file; a compiled directory knows its own.")
    ] = "nano",
    config: ConfigFile = None,
    set_: Overrides = None,
) -> None:
    """Show one document: source, sections, plans, facts, block borders, dependencies, checks."""
    from pdt.records.show.view import view_document
    from pdt.tokenizer import load_tokenizer

    document, settings = _find(input, id, preset, config, set_ or [])
    view = view_document(document, settings, load_tokenizer(settings.records.tokenizer))
    if html is not None:
        from pdt.provenance import atomic_path
        from pdt.records.show.html import render_page

        with atomic_path(html) as partial:
            partial.write_text(render_page(view), encoding="utf-8")
        print(html)
        return
    from rich.console import Console

    from pdt.records.show.terminal import render

    render(Console(), view)


@app.command()
def verify(
    directory: Annotated[Path, typer.Argument(help="A compiled directory.")],
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Derive every label again from the stored documents; exit 3 if anything differs."""
    from pdt.records.compile import Compiler
    from pdt.records.verify import corpus_config, verify_corpus

    settings = edit_config(corpus_config(directory), set_ or (), where=f"{directory} with --set")
    with _progress("verifying") as advance:
        report = verify_corpus(directory, Compiler.load(settings), progress=advance)
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        for difference in report.differences:
            print(difference)
    print(
        f"{report.records:,} records derived again, {len(report.differences):,} differences",
        file=sys.stderr,
    )
    if report.differences:
        raise typer.Exit(3)


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(help="A contract; all names when left out.")] = None,
) -> None:
    """Print the JSON Schema of one contract."""
    from pdt.records.contracts import CONTRACTS, json_schema

    if name is None:
        print("\n".join(CONTRACTS))
    elif name in CONTRACTS:
        print(json.dumps(json_schema(name), indent=2, ensure_ascii=False))
    else:
        raise UsageError(f"There is no contract {name!r}.\nContracts: {', '.join(CONTRACTS)}.")


def _find(
    source: Path,
    wanted: str | None,
    preset: str,
    config: Path | None,
    overrides: list[str],
) -> tuple[Any, PdtConfig]:
    """The document that `show` was asked for, and the config it is read with."""
    from pdt.records.corpus import is_corpus
    from pdt.records.inputs import read_documents
    from pdt.records.shards import Shard
    from pdt.records.verify import corpus_config, corpus_shards
    from pdt.teacher.document import TaughtDocument

    if is_corpus(source):
        settings = edit_config(corpus_config(source), overrides, where=f"{source} with --set")
        for name in corpus_shards(source):
            for record in Shard(source / name).records():
                if wanted in (None, record.record_id):
                    return TaughtDocument.model_validate_json(record.document), settings
    else:
        settings = load_config(preset, file=config, overrides=overrides)
        for _, document in read_documents([source]):
            if wanted in (None, document.record_id):
                return document, settings
    raise UsageError(f"{source} holds no record {wanted!r}.\nGive an id that is in it.")


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    for key, value in result.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        print(f"{key.replace('_', ' '):<20} {'none' if shown == '' else shown}")


class _progress:  # noqa: N801 (used as a function)
    """A counter on stderr, drawn only when someone watches."""

    def __init__(self, verb: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description} {task.completed:,.0f} documents"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task(verb, total=None)

    def __enter__(self) -> Any:
        self._bar.start()
        return lambda done: self._bar.update(self._task, completed=done)

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
