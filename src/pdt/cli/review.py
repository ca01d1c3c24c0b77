"""`pdt record review` and `pdt record seal`: people inspect records, and the pilot is sealed."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdt.cli.options import AsJson, ConfigFile, Out, Overrides, Preset, chosen
from pdt.errors import UsageError
from pdt.terms import Inspection

if TYPE_CHECKING:
    from pdt.config import PdtConfig
    from pdt.records.review import ReviewLog
    from pdt.teacher.document import TaughtDocument

Source = Annotated[Path, typer.Argument(help="A document file or a compiled directory.")]
Reviews = Annotated[Path, typer.Option(help="The log of reviews, a .jsonl file that only grows.")]


def review(
    source: Source,
    reviews: Reviews,
    id: Annotated[str | None, typer.Option(help="The record a verdict is about.")] = None,
    verdict: Annotated[
        Inspection | None, typer.Option(help="Without one, records are shown one after another.")
    ] = None,
    reviewer: Annotated[str | None, typer.Option(help="Who inspected it.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why, in one line.")] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Inspect on pages in a browser, as --reviewer.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --browser, on 127.0.0.1; 0 for a free one.")
    ] = 8780,
    preset: Preset = "nano",
    config: ConfigFile = None,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Keep who accepted or rejected which record and why; without a verdict, what is left to do.

    On a terminal and with --reviewer, every uninspected record is shown and asked about; with
    --browser, on pages.
    """
    from pdt.records.review import ReviewLog
    from pdt.records.stored import stored_documents

    log = ReviewLog(reviews)
    documents = list(stored_documents(source))
    if verdict is not None:
        document = next((one for one in documents if one.record_id == id), None)
        if document is None:
            raise UsageError(f"{source} holds no record {id!r}.\nGive --id one that is in it.")
        if not reviewer or not reason:
            raise UsageError(
                "A verdict needs a person and a reason.\nGive --reviewer and --reason."
            )
        log.add(document, verdict, reviewer=reviewer, reason=reason)
    elif browser:
        if not reviewer:
            raise UsageError("A verdict needs a person.\nGive --reviewer.")
        _serve(documents, reviews, reviewer, chosen(preset, config, set_), port)
        log = ReviewLog(reviews)
    elif reviewer and sys.stdin.isatty():
        _ask(documents, log, reviewer, chosen(preset, config, set_))
    _print_state(documents, log, as_json=as_json)


def seal(
    source: Source,
    reviews: Reviews,
    out: Out,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Seal a pilot: refused while a record is uninspected or the categories are out of balance."""
    from pdt.records.pilot import seal_pilot
    from pdt.records.review import ReviewLog
    from pdt.records.stored import stored_documents

    settings = chosen(preset, config, set_)
    pilot = seal_pilot(list(stored_documents(source)), ReviewLog(reviews), settings, out)
    if as_json:
        print(pilot.model_dump_json(indent=2))
        return
    each = ", ".join(f"{name} {count}" for name, count in pilot.categories.items())
    print(f"{len(pilot.records)} records sealed in {out}\n{each}\nseal {pilot.seal}")


def _serve(
    documents: "list[TaughtDocument]", reviews: Path, reviewer: str, config: "PdtConfig", port: int
) -> None:
    try:
        from pdt.audit.inspect.app import Inspecting, serve_inspection
    except ImportError as error:
        raise UsageError(
            "Pages need the fastapi and uvicorn packages.\nInstall them: pip install 'pdt[audit]'."
        ) from error
    room = Inspecting(documents, reviews, reviewer, config)
    serve_inspection(room, port=port, say=lambda text: print(text, file=sys.stderr, flush=True))


def _ask(
    documents: "list[TaughtDocument]", log: "ReviewLog", reviewer: str, config: "PdtConfig"
) -> None:
    from rich.console import Console

    from pdt.records.show.terminal import render
    from pdt.records.show.view import view_document
    from pdt.tokenizer import load_tokenizer

    tokenizer, console = load_tokenizer(config.records.tokenizer), Console()
    for document in documents:
        if log.of(document) is not None:
            continue
        render(console, view_document(document, config, tokenizer))
        choice = typer.prompt(f"{document.record_id}: accept, reject, skip or quit? [a/r/s/q]")
        if choice[:1] == "q":
            return
        if choice[:1] in ("a", "r"):
            verdict = Inspection.ACCEPTED if choice[:1] == "a" else Inspection.REJECTED
            log.add(document, verdict, reviewer=reviewer, reason=typer.prompt("why").strip())


def _print_state(documents: "list[TaughtDocument]", log: "ReviewLog", *, as_json: bool) -> None:
    rows: dict[str, dict[str, int]] = {}
    waiting = []
    for document in documents:
        row = rows.setdefault(
            document.category, {"accepted": 0, "rejected": 0, "changed": 0, "uninspected": 0}
        )
        found = log.of(document)
        state = (
            str(found.verdict) if found else "changed" if log.changed(document) else "uninspected"
        )
        row[state] += 1
        if found is None:
            waiting.append(document.record_id)
    if as_json:
        print(json.dumps({"categories": dict(sorted(rows.items())), "waiting": waiting}, indent=2))
        return
    names = ("accepted", "rejected", "changed", "uninspected")
    width = max(len("category"), *(len(name) for name in rows))
    print("  ".join([f"{'category':<{width}}", *names]))
    for category, row in sorted(rows.items()):
        print("  ".join([f"{category:<{width}}", *(f"{row[name]:>{len(name)}}" for name in names)]))
    if waiting:
        print(f"{len(waiting)} to inspect, the next is {waiting[0]}")
