"""The results as Markdown: Table 3 first, then every measure by subject."""

from collections.abc import Sequence

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.protocol.conditions import COINED, GENERATED, SCORED, Condition
from pdt.evaluation.protocol.evidence_gates import MeasuredGate, Verdict
from pdt.evaluation.report.results import Results
from pdt.evaluation.screens.registry import SCREENS

Table = tuple[str, Sequence[str], list[list[str]]]
"""A title, its headings and its rows."""

OWNERSHIP = (
    ("owner_recall", "owner recall"),
    ("leakage", "leakage"),
    ("completion", "completion"),
    ("reference_recall", "reference recall"),
    ("hard_negatives", "hard negatives"),
    ("altered", "wrong value"),
    ("duplication", "duplication"),
    ("longform", "long-form lanes"),
    ("short_sentences", "short sentences"),
)
MARK = {Verdict.MET: "met", Verdict.UNMET: "UNMET", Verdict.NOT_MEASURED: "not measured"}


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
        f"{words}{sign} {number}",
        gate.source,
        MARK[judged.verdict],
    ]


def all_tables(results: Results, raw: Raw) -> list[Table]:
    """Every table of the report, in order."""
    measures = results.measures
    return [
        (
            "Evidence gates",
            ("question", "evidence", "measured", "asked for", "source", "verdict"),
            [gate_row(judged, results.settings.documents) for judged in results.gates],
        ),
        _ownership(results),
        *_support(results),
        _addresses(results),
        _deltas(results),
        _bits(results),
        _agreement(results),
        (
            "Bus against self-only (differences over the same documents)",
            ("measure", "bus minus self-only"),
            [
                [name, percent(measures.get(f"sibling.{key}"))]
                for key, name in (
                    ("owner_recall", "owner recall"),
                    ("reference_recall", "reference recall"),
                    ("leakage", "leakage"),
                    ("duplication", "duplication"),
                    ("longform", "long-form lanes"),
                    ("in_time", "references in time"),
                    ("agreement", "agreement on coined words"),
                )
            ]
            + [
                [f"{kind} NLL, self-only minus bus", plain(measures.get(f"sibling.{kind}_nll"))]
                for kind in ("dependency", "other")
            ],
        ),
        _execution(results, raw),
        _screens(results),
    ]


def _ownership(results: Results) -> Table:
    rows = [
        [c.title, *(percent(results.measures.get(f"{c.name}.{key}")) for key, _ in OWNERSHIP)]
        for c in GENERATED
        if f"{c.name}.longform" in results.measures
    ]
    return "Free generation", ("condition", *(name for _, name in OWNERSHIP)), rows


def _support(results: Results) -> list[Table]:
    """Where documents keep their source: how much of what was written stands on it."""
    rows = [
        [c.title, *(percent(results.measures.get(f"{c.name}.{key}")) for key in _SUPPORT)]
        for c in GENERATED
        if f"{c.name}.support" in results.measures
    ]
    heads = ("condition", "sentences the source bears out", "sentences said before")
    return [("Support by the source", heads, rows)] if rows else []


_SUPPORT = ("support", "repetition")


def _addresses(results: Results) -> Table:
    names = (
        ("planner.retained", "learned recall over oracle recall"),
        ("planner.zero_drop", "recall lost with a zero plan"),
        ("swap.moved_recall", "after the swap, at moved addresses"),
        ("swap.unmoved_recall", "after the swap, at unmoved addresses"),
        ("swap.retained", "moved recall over unswapped recall"),
        ("swap.moved_minus_unmoved", "moved minus unmoved"),
    )
    rows = [[title, percent(results.measures.get(name))] for name, title in names]
    return "Plans", ("measure", "share"), rows


def _deltas(results: Results) -> Table:
    kinds = ("dependency", "other", "selectivity")
    rows = [
        [c.title, *(plain(results.measures.get(f"delta.{c.name}.{kind}"), 4) for kind in kinds)]
        for c in SCORED
        if f"delta.{c.name}.other" in results.measures
    ]
    titles = ("condition", "Δ dependency tokens", "Δ other tokens", "difference")
    return "NLL change against the intact bus, nats a token (Eq. 10)", titles, rows


def _bits(results: Results) -> Table:
    rows = [
        [
            c.title,
            plain(results.measures.get(f"bits.{c.name}.cross_entropy"), 2),
            plain(results.measures.get(f"bits.{c.name}.received"), 2),
            percent(results.measures.get(f"bits.{c.name}.share")),
            plain(results.measures.get(f"bits.{c.name}.over_floor"), 2),
        ]
        for c in SCORED
        if f"bits.{c.name}.share" in results.measures
    ]
    h = plain(results.measures.get("bits.h"), 2)
    titles = ("condition", "cross entropy", "received", "share of h", "over the no-notes floor")
    return f"Bits of a coined choice; h is {h}", titles, rows


def _agreement(results: Results) -> Table:
    keys = ("both", "in_time", "agree", "chance", "agree_whenever")

    def of(condition: Condition) -> list[Measure | None]:
        return [results.measures.get(f"agreement.{condition.name}.{key}") for key in keys]

    rows = [
        [c.title, *(with_n(percent(m), m) for m in of(c))]
        for c in COINED
        if f"agreement.{c.name}.both" in results.measures
    ]
    titles = (
        "condition", "both write it", "of these in time", "of these agree", "by chance",
        "agree, all",
    )  # fmt: skip
    return "Coined words in free generation, drawn for the owner", titles, rows


def _execution(results: Results, raw: Raw) -> Table:
    rows = []
    for side in (PACKED, SERIAL, ONE):
        key = f"execution.{side.replace(' ', '_')}"
        names = ("rounds", "seconds", "tokens_per_second")
        rows.append([side, *(plain(results.measures.get(f"{key}.{name}"), 2) for name in names)])
    for part in ("prefill", "decode", "barrier"):
        seconds = plain(results.measures.get(f"execution.packed.{part}_seconds"), 4)
        rows.append([f"packed, {part}", "", seconds, ""])
    if raw.execution is not None:
        peak = f"{raw.execution.peak_memory_bytes / 2**20:.0f} MB"
        rows.append(["peak memory of the process, everything above included", "", peak, ""])
        batched = f"{raw.execution.documents_per_second:.2f}"
        rows.append(["documents a second, batched", "", batched, ""])
    speedup = plain(results.measures.get("execution.speedup"), 2)
    title = f"Parallel execution; packed is {speedup} times as fast as serial"
    return title, ("way", "rounds", "seconds", "tokens/s"), rows


def _screens(results: Results) -> Table:
    """A screen that judged beside the chosen one."""
    kinds = (
        ("agrees", "{} agrees"),
        ("finds", "{} finds what is there"),
        ("false_alarms", "{} sees what is not there"),
    )
    rows = [
        [words.format(screen.name), percent(measure)]
        for screen in SCREENS
        for kind, words in kinds
        if (measure := results.measures.get(f"screens.{screen.name}_{kind}")) is not None
    ]
    title = f"Screens beside {results.settings.screen}, on the same lanes and facts"
    return title, ("measure", "share"), rows


def facts_of_run(results: Results, raw: Raw) -> list[str]:
    """What a reader must know before the numbers."""
    settings = results.settings
    limits = settings.longform
    scaled = (limits.tokens, limits.paragraphs) != (700, 4)
    return [
        f"{len(raw.documents)} held-out documents of the split "
        f"{', '.join(sorted({d.split for d in raw.documents}))}; "
        f"{settings.confidence:.0%} intervals over documents from {settings.resamples:,} "
        "bootstrap resamples, paired where conditions share documents.",
        f"Every condition but the oracle starts from the {settings.plan} plan. Judged by the "
        f"{settings.screen} screen: a screen, not an audit.",
        f"A lane is long-form with at least {limits.tokens} tokens and {limits.paragraphs} "
        "paragraphs and at most 10% of sentences under eight words"
        + (
            "; the two minimums are scaled to this corpus's sections (the paper's are 700 and 4)."
            if scaled
            else "."
        ),
        *_unread(raw),
        *(f"Checkpoint {role}: `{digest[:16]}`." for role, digest in results.models.items()),
    ]


def _unread(raw: Raw) -> list[str]:
    unread = sum(len(document.unread_choices) for document in raw.documents)
    if not unread:
        return []
    coined = unread + sum(len(document.choices) for document in raw.documents)
    return [
        f"{unread} of {coined} coined dependencies are in no measure of bits or agreement: no "
        "words lead to the coined one at both ends, or its alternatives are not listed or begin "
        "with the same token."
    ]


def render_markdown(results: Results, raw: Raw) -> str:
    """The whole report."""
    lines = ["# Evaluation", "", *(f"- {fact}" for fact in facts_of_run(results, raw))]
    return "\n".join([*lines, *markdown_tables(all_tables(results, raw))]) + "\n"


def markdown_tables(tables: Sequence[Table]) -> list[str]:
    """The lines of every table that has a row."""
    lines: list[str] = []
    for title, headings, rows in tables:
        if rows:
            lines += ["", f"## {title}", "", _row(headings), _row(["---"] * len(headings))]
            lines += [_row(row) for row in rows]
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
