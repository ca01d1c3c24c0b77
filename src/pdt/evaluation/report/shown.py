"""A gate, a verdict and a measure as a reader sees them."""

from collections.abc import Sequence

from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.protocol.evidence_gates import FLOOR, MeasuredGate, Verdict
from pdt.evaluation.report.results import Results

Table = tuple[str, Sequence[str], list[list[str]]]
"""A title, its headings and its rows."""

MARK = {
    Verdict.MET: "met",
    Verdict.UNMET: "UNMET",
    Verdict.NOT_MEASURED: "not measured",
    Verdict.NOT_APPLICABLE: "not applicable",
}
FEW_TO_TELL = 64
"""Documents under which a verdict says how few they are."""


def percent(measure: Measure | None) -> str:
    return _shown(measure, 100, 1, "%")


def plain(measure: Measure | None, digits: int = 3) -> str:
    return _shown(measure, 1, digits, "")


def _shown(measure: Measure | None, scale: float, digits: int, unit: str) -> str:
    if measure is None:
        return "–"
    low, high = measure.low * scale, measure.high * scale
    return f"{measure.estimate * scale:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"


def with_n(shown: str, measure: Measure | None) -> str:
    """On how many documents it rests: fewer than were judged, where few have what is measured."""
    return shown if measure is None else f"{shown[:-1]}; n = {measure.documents})"


def gate_row(judged: MeasuredGate, documents: int) -> list[str]:
    """Question, name, measured, asked for, source, verdict; n where it is not all `documents`."""
    gate, measure = judged.gate, judged.measure
    sign, threshold = gate.threshold
    in_nats = "nll" in gate.measure or "delta" in gate.measure
    words = {"low": "lower bound ", "high": "upper bound ", "estimate": ""}[gate.judged_on]
    as_number = in_nats or gate.measure == "execution.speedup"
    number = f"{threshold:g}" if as_number else f"{threshold:.0%}"
    shown = plain(measure) if as_number else percent(measure)
    return [
        judged.question,
        gate.name,
        shown if measure is None or measure.documents == documents else with_n(shown, measure),
        f"{words}{sign} {number}" + (f", floor {FLOOR:.0%}" if gate.floor else ""),
        gate.source,
        MARK[judged.verdict],
    ]


def verdict_line(results: Results) -> str:
    """How many gates are met, of how many that could be asked, and on how few documents."""
    counts = {v: sum(g.verdict is v for g in results.gates) for v in Verdict}
    asked = len(results.gates) - counts[Verdict.NOT_APPLICABLE]
    others = "".join(
        f", {count} {MARK[verdict].lower()}"
        for verdict, count in counts.items()
        if count and verdict is not Verdict.MET
    )
    documents = results.settings.documents
    few = f": too few to conclude from (under {FEW_TO_TELL})" if documents < FEW_TO_TELL else ""
    return f"{counts[Verdict.MET]} of {asked} gates are met{others}, on {documents} documents{few}."
