"""The report of a screen: every effect on every gate, what it costs, and what failed; sealed.

    SCREEN/report/report.json     the numbers and the seal; report.html and report.svg show them

Everything in it follows from the runs' verdicts, and `pdt verify` makes it again from them.

Paper: Appendix A, §7.4.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.evaluation.protocol.evidence_gates import Verdict, registered_questions
from pdt.evaluation.verify.stored_run import read_stored_run
from pdt.evaluation.verify.verify import verify_results
from pdt.parse import NotParsed, parse_json
from pdt.provenance import MANIFEST, new_directory, read_json_object, write_json, write_manifest
from pdt.screen.effects import Drawn, Effect, drawn_measures, effects_of
from pdt.screen.manifest import SealedRun, seal_of
from pdt.screen.place import RUNS, VERDICT, Failure, Place, RunState
from pdt.screen.variants import BASELINE

REPORT, REPORT_JSON, SVG, HTML = "report", "report.json", "report.svg", "report.html"
DRAFT = "draft"
CLOCKED = "execution."
"""Runs share machines with one another: what a clock says of two of them is not compared."""
Telling = Callable[[str], None]


class RunReport(Contract):
    """What became of one run."""

    run: Id
    variant: Id
    seed: int
    state: RunState
    verdict: Sha256 | None
    """Of its verdict's manifest."""
    train_seconds: float | None
    judge_seconds: float | None
    gates: dict[Line, Verdict]
    failures: tuple[Failure, ...]


class BaselineMeasure(Contract):
    """The baseline itself, in one measure."""

    measure: Line
    by_seed: dict[str, float]
    better: Literal["more", "less"]
    """Which way the gate wants it."""


class VariantCost(Contract):
    """What a variant costs and what it buys."""

    variant: Id
    parameters: int
    predicted_flops: float
    """Of training, by the sealed estimate."""
    relative: float
    """Predicted, over the baseline's."""
    train_seconds: float | None
    """Measured, the mean of its finished runs."""
    gates_met: float | None
    """The mean over its finished runs."""


class ScreenReport(Contract):
    """report.json."""

    schema_version: Literal["pdt.screen-report/1"] = "pdt.screen-report/1"
    screen: Sha256
    """The seal of the screen."""
    kind: Literal["one-factor", "interactions"]
    short: bool
    whole: bool
    """False for a draft: some runs had not ended."""
    comparison: Line
    headline: Line
    runs: tuple[RunReport, ...]
    baseline: tuple[BaselineMeasure, ...]
    effects: tuple[Effect, ...]
    not_measured: tuple[Line, ...]
    """Measures of gates that no run has, or that read a clock."""
    costs: tuple[VariantCost, ...]
    seal: Sha256

    def of(self, measure: str) -> list[Effect]:
        """Ordered from what helps most."""
        better = {row.measure: row.better for row in self.baseline}[measure]
        found = [effect for effect in self.effects if effect.measure == measure]
        return sorted(found, key=lambda e: e.estimate, reverse=better == "more")


def make_report(
    place: Place, *, draft: bool = False, telling: Telling = lambda text: None
) -> ScreenReport:
    """From the verdicts of all runs; a run that is neither whole nor failed is refused."""
    screen, standings = place.screen, place.standings()
    ended = (RunState.FINISHED, RunState.FAILED)
    open_ = [s.entry.run for s in standings if s.state not in ended]
    if open_ and not draft:
        raise UsageError(
            f"{len(open_)} of {len(standings)} runs have not ended, {open_[0]} among them.\n"
            "Run them: pdt screen run. Or look at a --draft, which is not sealed as a whole."
        )
    drawn: dict[tuple[str, int], dict[str, Drawn]] = {}
    gates: dict[str, dict[str, Verdict]] = {}
    for standing in standings:
        if standing.state is RunState.FINISHED:
            entry = standing.entry
            telling(entry.run)
            _check_verdict(place, entry)
            stored = read_stored_run(place.of(entry.run) / VERDICT)
            drawn[entry.variant, entry.seed] = drawn_measures(
                stored.raw, stored.results.settings, screen.design.compared, screen.measured
            )
            gates[entry.run] = {g.gate.name: g.verdict for g in stored.results.gates}
    there = [
        measure
        for measure in screen.measured
        if not measure.startswith(CLOCKED) and any(measure in d for d in drawn.values())
    ]
    tree: dict[str, Any] = {
        "screen": screen.seal,
        "kind": screen.kind,
        "short": screen.short,
        "whole": not open_,
        "comparison": screen.comparison,
        "headline": screen.design.compared.headline,
        "runs": tuple(
            _run_report(place, standing.entry, standing.state, standing.failures, gates)
            for standing in standings
        ),
        "baseline": tuple(_baseline(m, drawn) for m in there),
        "effects": tuple(
            effects_of(
                drawn,
                baseline=BASELINE,
                variants=[v.name for v in screen.variants if v.name != BASELINE],
                measures=there,
                compared=screen.design.compared,
                comparisons=screen.comparisons,
            )
        ),
        "not_measured": tuple(m for m in screen.measured if m not in there),
        "costs": tuple(_cost(place, variant.name, gates) for variant in screen.variants),
        "seal": "0" * 64,
    }
    report = ScreenReport.model_validate(tree)
    return report.model_copy(update={"seal": seal_of(report.model_dump(mode="json"))})


def write_screen_report(place: Place, report: ScreenReport) -> Path:
    """SCREEN/report, or SCREEN/draft for one that is not whole."""
    out = place.directory / (REPORT if report.whole else DRAFT)
    with new_directory(out) as work:
        for name, text in views(place, report).items():
            (work / name).write_text(text, encoding="utf-8")
        write_json(work / REPORT_JSON, report.model_dump(mode="json"))
        write_manifest(
            work, made_by="pdt screen report", config=None, inputs={"screen": place.screen.seal}
        )
    return out


def views(place: Place, report: ScreenReport) -> dict[str, str]:
    """Every file that shows the numbers, by name."""
    from pdt.screen.page import render_page, render_svg

    return {HTML: render_page(place.screen, report), SVG: render_svg(place.screen, report)}


def read_screen_report(directory: Path) -> ScreenReport:
    """A sealed report, unchanged."""
    path = directory / REPORT_JSON
    remedy = "Make the report again from its screen: pdt screen report."
    try:
        tree = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"{directory} holds no {REPORT_JSON}.\n{remedy}") from error
    except (OSError, NotParsed) as error:
        raise ContractBroken(f"{path} cannot be read: {error}.", remedy) from error
    if not isinstance(tree, dict) or seal_of(tree) != tree.get("seal"):
        raise ContractBroken(f"{path} was changed after it was sealed.", remedy)
    return parse_contract(ScreenReport, tree, where=str(path), remedy=remedy)


def verify_report(directory: Path, telling: Telling = lambda text: None) -> ScreenReport:
    """Every verdict verified, and the report made again from them; a difference is refused."""
    report = read_screen_report(directory)
    place = Place.open(directory.resolve().parent)
    remedy = "Make the report again, or take the screen's directory from its source."
    if report.screen != place.screen.seal:
        raise ContractBroken(f"{directory} is the report of another screen.", remedy)
    for run in report.runs:
        if run.verdict is not None:
            telling(run.run)
            verify_results(place.of(run.run) / VERDICT)
    again = make_report(place, draft=not report.whole)
    if again != report:
        fields = [
            name for name in ScreenReport.model_fields
            if getattr(again, name) != getattr(report, name) and name != "seal"
        ]  # fmt: skip
        raise ContractBroken(
            f"{directory / REPORT_JSON} does not follow from the runs: {', '.join(fields)}.", remedy
        )
    for name, text in views(place, report).items():
        if (directory / name).read_bytes() != text.encode():
            raise ContractBroken(f"{directory / name} does not show the stored numbers.", remedy)
    return report


def better_of(measure: str) -> Literal["more", "less"]:
    """Which way the first gate on a measure wants it."""
    signs = {g.measure: g.threshold[0] for row in reversed(registered_questions())
             for g in reversed(row.gates)}  # fmt: skip
    return "more" if signs[measure] in ("≥", ">") else "less"


def _check_verdict(place: Place, entry: SealedRun) -> None:
    """A verdict of this very run: its configuration, and the documents that were sealed."""
    where = place.of(entry.run) / VERDICT
    manifest = read_json_object(where / MANIFEST)
    config, inputs = manifest.get("config") or {}, manifest.get("inputs") or {}
    model = place.screen.config_of(entry).model_dump(mode="json")
    wrong = [
        what
        for what, ours, theirs in (
            ("configuration", model, config.get("model")),
            ("held-out corpus", place.screen.held_out.digest, inputs.get("records")),
        )
        if ours != theirs
    ]
    if wrong:
        raise ContractBroken(
            f"{where} was judged with another {' and '.join(wrong)} than {entry.run} has.",
            f"Remove {Path(RUNS) / entry.run} and run it again.",
        )


def _run_report(
    place: Place,
    entry: SealedRun,
    state: RunState,
    failures: tuple[Failure, ...],
    gates: Mapping[str, dict[str, Verdict]],
) -> RunReport:
    done = place.done(entry.run) if state is RunState.FINISHED else None
    return RunReport(
        run=entry.run,
        variant=entry.variant,
        seed=entry.seed,
        state=state,
        verdict=None if done is None else done.manifest_sha256,
        train_seconds=None if done is None else done.train_seconds,
        judge_seconds=None if done is None else done.judge_seconds,
        gates=gates.get(entry.run, {}),
        failures=failures,
    )


def _baseline(
    measure: str, drawn: Mapping[tuple[str, int], Mapping[str, Drawn]]
) -> BaselineMeasure:
    return BaselineMeasure(
        measure=measure,
        by_seed={
            str(seed): found[measure].estimate
            for (variant, seed), found in drawn.items()
            if variant == BASELINE and measure in found
        },
        better=better_of(measure),
    )


def _cost(place: Place, name: str, gates: Mapping[str, dict[str, Verdict]]) -> VariantCost:
    variant, baseline = place.screen.variant(name), place.screen.baseline
    runs = [entry.run for entry in place.screen.runs if entry.variant == name]
    seconds = [done.train_seconds for run in runs if (done := place.done(run)) is not None]
    met = [sum(v is Verdict.MET for v in gates[run].values()) for run in runs if run in gates]
    return VariantCost(
        variant=name,
        parameters=variant.census["total"],
        predicted_flops=variant.cost.training_flops,
        relative=round(variant.cost.training_flops / baseline.cost.training_flops, 6),
        train_seconds=round(sum(seconds) / len(seconds), 3) if seconds else None,
        gates_met=round(sum(met) / len(met), 3) if met else None,
    )
