"""`pdt source`: take exact revisions, judge them, look at them."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdt.cli.options import AsJson, ConfigFile, Out, Overrides, chosen, need
from pdt.errors import ContractBroken, UsageError

if TYPE_CHECKING:
    from pdt.config import PdtConfig
    from pdt.sources.fetch import Asks
    from pdt.sources.harvest import Harvest

app = typer.Typer(
    help="Wikipedia revisions as sources: fetch, judge whole, review.", no_args_is_help=True
)

CandidateFile = Annotated[
    Path, typer.Argument(help="Reviewed candidates: a YAML list, or JSONL.", show_default=False)
]
Candidates = Annotated[
    Path | None,
    typer.Option("--candidates", help="The reviewed candidate file.", show_default=False),
]
Preset = Annotated[str, typer.Option("--preset", help="Start from this preset.")]


@app.command()
def fetch(
    candidates: CandidateFile,
    out: Annotated[Path, typer.Option("--out", help="Where bundles go.")],
    contact: Annotated[
        str | None,
        typer.Option(help="Your mail address or web page; Wikimedia asks for it."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Offline: answer from these bundles or captures instead."),
    ] = None,
    reuse: Annotated[
        Path | None, typer.Option(help="Bundles whose pages are taken again only if they changed.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in a directory begun.")] = False,
    test_server: Annotated[
        str | None, typer.Option(help="Ask this loopback server; for tests only.")
    ] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Take each candidate's exact revision as one immutable bundle; a killed run goes on."""
    need_extra()
    from pdt.provenance import refuse_existing, sha256_file, write_manifest
    from pdt.sources.candidates import read_candidates
    from pdt.sources.client import base_url
    from pdt.sources.fetch import fetch_all

    overrides = list(set_ or [])
    if contact is not None:
        overrides.append(f"sources.fetch.contact={json.dumps(contact)}")
    settings = chosen(preset, config, overrides)
    wanted = read_candidates(candidates)
    if not resume:
        refuse_existing(out, else_="go on in it with --resume")
    asks = _asks(settings, source, reuse, test_server)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with _counter("taking", len(wanted)) as advance:
            result = fetch_all(
                wanted,
                out,
                asks,
                lambda project: base_url(project, test_server),
                settings.sources,
                progress=advance,
            )
    finally:
        asks.close()
    write_manifest(
        out,
        made_by="pdt source fetch",
        config=settings.sources.model_dump(mode="json"),
        inputs={str(candidates): sha256_file(candidates)},
    )
    summary = {
        "candidates": len(wanted),
        "taken": len(result.taken),
        "already_there": result.already,
        "refused": [one.model_dump() for one in result.refused],
        "put_off": [one.model_dump() for one in result.put_off],
        "requests": asks.requests,
    }
    if as_json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        print(
            f"{len(result.taken)} taken, {result.already} already settled, "
            f"{len(result.refused)} refused, {len(result.put_off)} put off; "
            f"{asks.requests} requests. Bundles in {out / 'bundles'}"
        )
        for one in [*result.refused, *result.put_off]:
            print(f"{one.title}: {one.reason}", file=sys.stderr)
    if result.put_off or result.stopped:
        raise ContractBroken(
            result.stopped or f"Not taken now, to be tried again: {len(result.put_off)}.",
            "Run the same command again with --resume.",
        )


@app.command("gate")
def judge_sources(
    directory: Annotated[Path, typer.Argument(help="A directory of bundles.")],
    out: Out,
    candidates: Candidates = None,
    splits: Annotated[
        Path | None, typer.Option(help="The splits.json of an earlier run; nothing in it moves.")
    ] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Hold every article against the source gates of Table 1; accept or reject it whole."""
    need_extra()
    from rich.console import Console

    from pdt.provenance import new_directory, refuse_existing, sha256_file
    from pdt.sources.harvest import write_harvest
    from pdt.sources.report import yield_report
    from pdt.sources.verdict import AcceptedSource, RejectedSource

    refuse_existing(out)
    settings = chosen(preset, config, set_)
    root = bundle_root(directory)
    harvest = _harvest(settings, candidates, splits)
    judged = []
    with _counter("judging", None) as advance:
        for number, one in enumerate(harvest.judge_all(root), start=1):
            judged.append(one)
            advance(number, "")
    if not judged:
        raise UsageError(f"{root} holds no bundle.\nGive the directory that fetch wrote.")
    inputs = {str(path): sha256_file(path) for path in (candidates, splits) if path is not None}
    with new_directory(out) as work:
        write_harvest(work, judged, harvest, inputs)
    accepted = [one for one in judged if isinstance(one, AcceptedSource)]
    rejected = [one for one in judged if isinstance(one, RejectedSource)]
    report = yield_report(accepted, rejected)
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        Console().print(_judged_table(judged))
        print(f"{report.accepted} accepted, {report.judged - report.accepted} rejected: {out}")


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="What `pdt source gate` wrote.")],
    svg: Annotated[Path | None, typer.Option(help="Write the picture here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Yield by source gate and category: numbers, and a picture."""
    need_extra()
    from rich.console import Console
    from rich.table import Table

    from pdt.provenance import atomic_path
    from pdt.sources.harvest import read_judged
    from pdt.sources.report import render_svg, yield_report

    found = yield_report(*read_judged(directory))
    if svg is not None:
        if not svg.parent.is_dir():
            raise UsageError(f"{svg.parent} is not a directory.\nMake it, or choose another --svg.")
        with atomic_path(svg) as partial:
            partial.write_text(render_svg(found), encoding="utf-8")
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    table = Table("row", "requirement", "passed", "failed", "only reason")
    for one in found.requirements:
        numbers = (one.passed, one.failed, one.only_reason)
        table.add_row(one.row, one.name, *map(str, numbers))
    Console().print(table)
    for kind in found.categories:
        print(f"{kind.category}: {kind.accepted} accepted, {kind.rejected} rejected")
    if found.left_out:
        print("left out: " + ", ".join(f"{n} {why}" for why, n in found.left_out.items()))
    print(f"{found.accepted} of {found.judged} accepted, {found.unreadable} unreadable")
    if svg is not None:
        print(svg)


@app.command()
def show(
    bundle: Annotated[Path, typer.Argument(help="One bundle directory.")],
    candidates: Candidates = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page here.")] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    set_: Overrides = None,
) -> None:
    """Show one source as a reviewer needs it: source gates, text, citations, works."""
    need_extra()
    from rich.console import Console

    from pdt.provenance import atomic_path
    from pdt.sources.reading import read_source
    from pdt.sources.show.html import render_page
    from pdt.sources.show.terminal import render
    from pdt.sources.source_gates import judge_source

    settings = chosen(preset, config, set_)
    reading = read_source(bundle, settings.sources.html)
    harvest = _harvest(settings, candidates, None)
    key = (reading.bundle.project, reading.bundle.revision_id)
    verdict = judge_source(
        reading, harvest.candidates.get(key), harvest.ledger, settings, harvest.tokenizer
    )
    if html is not None:
        if not html.parent.is_dir():
            raise UsageError(f"{html.parent} is not a directory.\nChoose another --html.")
        with atomic_path(html) as partial:
            partial.write_text(render_page(reading, verdict), encoding="utf-8")
        print(html)
        return
    render(Console(), reading, verdict)


def _harvest(settings: "PdtConfig", candidates: Path | None, splits: Path | None) -> "Harvest":
    from pdt.sources.candidates import read_candidates
    from pdt.sources.harvest import Harvest, by_revision
    from pdt.sources.splits import read_ledger, seal_splits
    from pdt.tokenizer import load_tokenizer

    wanted = read_candidates(candidates) if candidates is not None else []
    ledger = seal_splits(
        wanted, settings.sources.splits, read_ledger(splits) if splits is not None else None
    )
    tokenizer = load_tokenizer(settings.records.tokenizer)
    return Harvest(by_revision(wanted), ledger, settings, tokenizer)


def bundle_root(directory: Path) -> Path:
    """The bundles of a directory that fetch wrote, or the directory itself.

    Refused before a tokenizer or a candidate file is asked for: this is the caller's own word.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory.\nGive a directory of bundles.")
    inner = directory / "bundles"
    return inner if inner.is_dir() else directory


def _asks(
    settings: "PdtConfig", source: Path | None, reuse: Path | None, test_server: str | None
) -> "Asks":
    from pdt.sources.client import PoliteClient
    from pdt.sources.recorded import Recording

    if source is not None:
        if reuse is not None or test_server is not None:
            raise UsageError("--from is offline.\nLeave --reuse and --test-server out.")
        return Recording(source)
    known = Recording(reuse) if reuse is not None else None
    return PoliteClient(settings.sources.fetch, test_server=test_server, known=known)


def _judged_table(judged: list[Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    from pdt.sources.verdict import AcceptedSource

    table = Table("article", "verdict", "reasons")
    for one in judged:
        if isinstance(one, AcceptedSource):
            table.add_row(Text(one.article.title), Text("accepted", "green"), Text(str(one.split)))
        else:
            reasons = "\n".join(line.splitlines()[0] for line in one.reasons)
            table.add_row(Text(one.title), Text("rejected", "red"), Text(reasons))
    return table


def need_extra() -> None:
    """The libraries of the `sources` extra, or one clear refusal."""
    need("sources", "httpx2", "mwparserfromhell", "selectolax")


@contextmanager
def _counter(verb: str, total: int | None) -> Iterator[Any]:
    """Progress on stderr, drawn only when someone watches."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(verb, total=total)
        of = f" of {total:,}" if total is not None else ""
        yield lambda done, title: bar.update(
            task, completed=done, description=f"{verb} {done:,}{of} {title}".replace("[", "\\[")
        )
