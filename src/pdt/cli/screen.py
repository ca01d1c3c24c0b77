"""`pdt screen`: one factor at a time, sealed before it trains."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset, busy, chosen
from pdt.errors import PdtError, UsageError

if TYPE_CHECKING:
    from pdt.screen.compile import Decided
    from pdt.screen.place import Place, RunStanding
    from pdt.screen.report import ScreenReport

app = typer.Typer(
    help="Vary one factor at a time, sealed before anything trains.", no_args_is_help=True
)
DesignFile = Annotated[
    Path | None,
    typer.Option("--design", help="Axes, seeds, judging; by default the preset's own."),
]


@app.command("compile")
def compile_(
    records: Annotated[
        Path | None, typer.Argument(help="The compiled corpus that every run trains on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A new directory.", show_default=False)
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(help="The corpus that runs are judged on; by default RECORDS."),
    ] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    design: DesignFile = None,
    short: Annotated[
        bool, typer.Option("--short", help="The design's short form: minutes a run.")
    ] = False,
    start: Annotated[
        str | None,
        typer.Option("--start", help="A trained model that every run starts from, where it fits."),
    ] = None,
    any_code: Annotated[
        bool,
        typer.Option("--any-code", help="Let other revisions of the code run it too."),
    ] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print what it would cost by card; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write every configuration of a screen to a sealed manifest, before anything trains.

    An edited manifest does not run. With --estimate nothing is read or written.
    """
    from pdt.screen.compile import Asked, compile_screen, decide

    asked = Asked(preset, config, tuple(overrides or ()), design, short, start, any_code)
    if estimate:
        with busy("counting parameters"):
            decided = decide(asked)
        _print_estimate(decided, as_json)
        return
    if records is None or out is None:
        raise UsageError("Give RECORDS and --out, or --estimate for the cost alone.")
    with busy("counting parameters"):
        screen = compile_screen(asked, records, held_out or records, out)
    if as_json:
        print(json.dumps({"out": str(out), "seal": screen.seal, "runs": len(screen.runs)}))
        return
    console = Console()
    table = Table("variant", "differs in", "parameters", box=None, pad_edge=False)
    table.columns[2].justify = "right"
    for variant in screen.variants:
        keys = ", ".join(f"{key} {new}" for key, (_, new) in variant.difference.items())
        table.add_row(variant.name, _short(keys), f"{variant.census['total']:,}")
    console.print(table)
    print(f"{len(screen.variants)} variants × {len(screen.design.seeds)} seeds: "
          f"{len(screen.runs)} runs")  # fmt: skip
    print(f"{out / 'screen.json'}\nseal {screen.seal}")


class Where(StrEnum):
    """Who does the runs of a screen."""

    LOCAL = "local"
    SLURM = "slurm"
    RAY = "ray"


ScreenDirectory = Annotated[Path, typer.Argument(help="What `pdt screen compile` wrote.")]


@app.command()
def run(
    screen: ScreenDirectory,
    where: Annotated[
        Where, typer.Option("--on", help="Processes here, a Slurm cluster, or a Ray cluster.")
    ] = Where.LOCAL,
    workers: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="One run, such as baseline.1729; repeat.", show_default=False),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Runs that failed are done again; why is kept.")
    ] = False,
    config: ConfigFile = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A key of cluster, as in cluster.gpus=1.", show_default=False),
    ] = None,
) -> None:
    """Do every run of a sealed screen that is not whole; killed or stopped, it goes on from there.

    A lost process is begun again from its checkpoint; a run that is whole is never done again.
    """
    from pdt.lock import hold_run
    from pdt.screen.here import run_here
    from pdt.screen.place import Place, RunState
    from pdt.screen.task import check_inputs

    place = Place.open(screen)
    cluster = chosen("canonical", config, _of_cluster(set_)).cluster
    check_inputs(place.screen)
    wanted = {place.screen.entry(name).run for name in only or ()}
    skipped = {RunState.FINISHED, *(() if retry else (RunState.FAILED,))}
    todo = [
        standing.entry.run
        for standing in place.standings()
        if standing.state not in skipped and (not wanted or standing.entry.run in wanted)
    ]
    place.forget_stop()
    if todo and where is Where.SLURM:
        from pdt.screen.cluster import submit_runs

        job = submit_runs(place, todo, cluster, workers)
        print(f"submitted {len(todo)} runs as job {job}; `pdt screen status {screen}` shows them")
        return
    with hold_run(screen, "running a screen", "See `pdt screen status`, or wait for it to end."):
        if todo and where is Where.RAY:
            from pdt.screen.cluster import run_on_ray

            run_on_ray(place, todo, cluster, workers)
        elif todo:
            run_here(place, todo, workers=workers, gpus=cluster.gpus, told=_say)
    _conclude(place, wanted or {entry.run for entry in place.screen.runs})


@app.command()
def status(
    screen: ScreenDirectory,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it anew until every run has ended, or Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """How far every run of a screen is, read from its directory: while it goes and after a kill."""
    from dataclasses import asdict

    from rich.live import Live

    from pdt.screen.place import Place, RunState

    place = Place.open(screen)
    if as_json:
        rows = [asdict(standing) for standing in place.standings()]
        print(json.dumps({"seal": place.screen.seal, "runs": rows}, indent=2, default=_plain))
        return
    found = place.standings()
    console = Console()
    if not watch:
        console.print(_standings(place, found))
        return
    with Live(_standings(place, found), console=console, auto_refresh=False) as live:
        while any(s.state not in (RunState.FINISHED, RunState.FAILED) for s in found):
            time.sleep(WATCH_SECONDS)
            found = place.standings()
            live.update(_standings(place, found), refresh=True)


@app.command()
def stop(screen: ScreenDirectory) -> None:
    """Ask every run to keep what it has and end; `pdt screen run` goes on from there."""
    from pdt.screen.place import Place, RunState

    place = Place.open(screen)
    place.ask_to_stop()
    running = [s.entry.run for s in place.standings() if s.state is RunState.RUNNING]
    print(
        f"{len(running)} runs are asked to stop, after the step or batch they are at; "
        "none begins.\nGo on with `pdt screen run`."
    )


@app.command()
def report(
    screen: ScreenDirectory,
    draft: Annotated[
        bool, typer.Option("--draft", help="Of the runs that are whole so far; not to register on.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Seal what every factor did to every gate, with its cost, and the failures.

    Writes SCREEN/report: report.json, report.html, report.svg. `pdt verify` makes it again.
    """
    from pdt.evaluation.verify.verify import verify_results
    from pdt.provenance import refuse_existing
    from pdt.screen.place import VERDICT, Place, RunState
    from pdt.screen.report import DRAFT, REPORT, make_report, write_screen_report

    place = Place.open(screen)
    refuse_existing(screen / (DRAFT if draft else REPORT), else_="verify it with `pdt verify`")
    with busy("reading verdicts"):
        if not draft:
            for standing in place.standings():
                if standing.state is RunState.FINISHED:
                    verify_results(place.of(standing.entry.run) / VERDICT)
        found = make_report(place, draft=draft)
        out = write_screen_report(place, found)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    _print_report(found)
    print(f"{out}\nseal {found.seal}")


@app.command()
def register(
    screen: Annotated[Path, typer.Argument(help="A screen whose report is sealed.")],
    design: Annotated[Path, typer.Option("--design", help="The same axes, with `interactions:`.")],
    out: Annotated[Path, typer.Option("--out", help="A new directory.")],
) -> None:
    """Seal a study of interactions, after the report of the screen it follows.

    Its manifest names both seals. It starts, trains and is judged as the screen was.
    """
    from pdt.screen.register import register_interactions

    with busy("counting parameters"):
        made = register_interactions(screen, design, out)
    assert made.registered is not None
    print(f"{len(made.variants) - 1} interactions × {len(made.design.seeds)} seeds, registered "
          f"after report {made.registered.after_report[:12]}")  # fmt: skip
    print(f"{out / 'screen.json'}\nseal {made.seal}")


WATCH_SECONDS = 2.0


def _print_report(report: "ScreenReport") -> None:
    """Every clear effect, and how many are not."""
    table = Table(
        "measure", "variant", "effect", "for all comparisons", "p", box=None, pad_edge=False
    )
    clear = [effect for effect in report.effects if effect.clear]
    for effect in sorted(clear, key=lambda e: (e.measure, e.estimate)):
        table.add_row(
            effect.measure, effect.variant, f"{effect.estimate:+.4f}",
            f"{effect.low_all:+.4f} to {effect.high_all:+.4f}", f"{effect.p_corrected:.2g}",
        )  # fmt: skip
    Console().print(table)
    failed = sum(run.state == "failed" for run in report.runs)
    print(
        f"{len(clear)} of {len(report.effects)} effects are clear after the correction; "
        f"{failed} runs failed."
    )


def verify_screen_report(directory: Path, as_json: bool) -> None:
    """What `pdt verify` does with the report of a screen."""
    from pdt.screen.report import verify_report

    with busy("making the report again"):
        found = verify_report(directory)
    judged = sum(run.verdict is not None for run in found.runs)
    said = {"directory": str(directory), "seal": found.seal, "runs_verified": judged,
            "effects": len(found.effects), "whole": found.whole}  # fmt: skip
    if as_json:
        print(json.dumps(said, indent=2))
        return
    print(
        f"{directory} is whole: {len(found.effects)} effects follow from {judged} verdicts, each "
        f"of which was verified.\nseal {found.seal}"
    )


def _of_cluster(overrides: list[str] | None) -> list[str]:
    """What a run computes is sealed; where it computes is not."""
    for override in overrides or ():
        if not override.startswith("cluster."):
            raise UsageError(
                f"--set {override} would change what was sealed.\n"
                "Only cluster. can be set here; compile another screen for the rest."
            )
    return overrides or []


def _conclude(place: "Place", wanted: set[str]) -> None:
    """How all runs stand; an error when one of those that were wanted has no end."""
    from pdt.screen.place import RunState

    found = place.standings()
    counts = Counter(standing.state for standing in found)
    print(", ".join(f"{counts[state]} {state}" for state in RunState if counts[state]))
    failed = [s for s in found if s.state is RunState.FAILED and s.entry.run in wanted]
    if failed:
        lines = [f"  {s.entry.run}: {s.doing}" for s in failed[:10]]
        more = [f"  and {len(failed) - 10} more"] if len(failed) > 10 else []
        raise PdtError(
            "\n".join([f"{len(failed)} of {len(found)} runs failed.", *lines, *more])
            + "\nA report keeps them as failures; --retry does them again."
        )
    left = [s for s in found if s.state is not RunState.FINISHED and s.entry.run in wanted]
    if left and not place.stop_asked:
        raise PdtError(
            f"{len(left)} of {len(found)} runs have not ended, {left[0].entry.run} among them.\n"
            "Run the same command again: each goes on from what it has kept."
        )


def _standings(place: "Place", found: "Sequence[RunStanding]") -> Table:
    from pdt.screen.place import RunState

    seeds = place.screen.design.seeds
    table = Table("variant", *(str(seed) for seed in seeds), box=None, pad_edge=False)
    colours = {
        RunState.FINISHED: "green", RunState.FAILED: "red", RunState.RUNNING: "yellow",
        RunState.STOPPED: "yellow", RunState.WAITING: "dim",
    }  # fmt: skip
    of = {(s.entry.variant, s.entry.seed): s for s in found}
    for variant in place.screen.variants:
        cells = []
        for seed in seeds:
            one = of[variant.name, seed]
            at = "" if one.state in (RunState.FINISHED, RunState.WAITING) else (
                f" {one.step}/{one.steps}" if one.step < one.steps else " judging"
            )  # fmt: skip
            tried = f" ({len(one.failures)} failed before)" if one.failures else ""
            kept = "" if one.state is RunState.FAILED else tried
            cells.append(f"[{colours[one.state]}]{one.state}{at}[/]{kept}")
        table.add_row(variant.name, *cells)
    counts = Counter(standing.state for standing in found)
    table.caption = ", ".join(f"{counts[state]} {state}" for state in RunState if counts[state])
    table.caption_justify = "left"
    return table


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_estimate(decided: "Decided", as_json: bool) -> None:
    from pdt.screen.cost import REACHED, cards, devices_for, hours_on

    seeds = len(decided.design.seeds)
    rows: list[dict[str, Any]] = []
    for card in cards():
        hours = {v.name: hours_on(v.cost, card) for v in decided.variants}
        devices = {v.name: devices_for(v.cost, card) for v in decided.variants}
        without = [name for name, count in devices.items() if count is None]
        rows.append(
            {
                "card": card.name,
                "devices_a_run": devices["baseline"],
                "most_devices_a_run": max((d for d in devices.values() if d), default=None),
                "baseline_device_hours": hours["baseline"],
                "screen_device_hours": seeds * sum(hours.values()),
                "does_not_fit": without,
            }
        )
    first = decided.variants[0].cost
    said = {
        "prediction": True,
        "runs": seeds * len(decided.variants),
        "baseline_training_flops": first.training_flops,
        "share_of_peak_assumed": REACHED,
        "prompt_tokens": first.prompt_tokens,
        "section_tokens": first.section_tokens,
        "cards": rows,
    }
    if as_json:
        print(json.dumps(said, indent=2))
        return
    print(
        f"A PREDICTION, from the census's arithmetic: {said['runs']} runs; the baseline's training "
        f"is {first.training_flops:.3g} operations ({first.documents:,} documents of "
        f"{first.prompt_tokens:,} + 3 × {first.section_tokens:,} tokens). Cards are taken to reach "
        f"{REACHED:.0%} of their BF16 peak."
    )
    table = Table("card", "cards a run", "hours, baseline", "hours, whole screen", "too large")
    for row in rows:
        table.add_row(
            row["card"],
            f"{row['devices_a_run'] or '–'} to {row['most_devices_a_run'] or '–'}",
            _hours(row["baseline_device_hours"]),
            _hours(row["screen_device_hours"]),
            f"{len(row['does_not_fit'])} of {len(decided.variants)}",
        )
    Console().print(table)
    print("Hours are card hours: of one card, however many share a run.")


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _short(text: str, most: int = 70) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
