"""The results as Markdown: Table 3 first, then every measure by subject."""

from collections.abc import Sequence

from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.protocol.conditions import COINED, GENERATED, SCORED, Condition
from pdt.evaluation.report.execution import execution_table
from pdt.evaluation.report.facts import facts_of_run
from pdt.evaluation.report.harder import channel_table, node_table, reference_table
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import Table, gate_row, percent, plain, with_n
from pdt.evaluation.screens.registry import SCREENS

OWNERSHIP = (
    ("owner_recall", "owner recall"),
    ("leakage", "leakage"),
    ("completion", "completion"),
    ("reference_recall", "reference recall"),
    ("hard_negatives", "hard negatives"),
    ("altered", "wrong value"),
    ("wrong_doer", "wrong doer"),
    ("supported", "said and true"),
    ("duplication", "duplication"),
)
PROSE = (
    ("longform", "long-form lanes"),
    ("short_sentences", "short sentences"),
    ("repeated", "repeated sentences"),
    ("shared_sentences", "sentences a sibling has too"),
    ("distinct", "distinct runs of three words"),
    ("sentence_words", "words a sentence"),
    ("lane_tokens", "tokens a lane"),
)


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
        _prose(results),
        _addresses(results),
        node_table(results),
        _deltas(results),
        _bits(results),
        channel_table(results),
        _agreement(results),
        reference_table(results),
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
                    ("shared_sentences", "sentences a sibling has too"),
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
        execution_table(results, raw),
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


def _prose(results: Results) -> Table:
    rows = [
        [
            c.title,
            *(
                (
                    plain(measure, 1)
                    if key in ("sentence_words", "lane_tokens")
                    else percent(measure)
                )
                for key, _ in PROSE
                for measure in [results.measures.get(f"{c.name}.{key}")]
            ),
        ]
        for c in GENERATED
        if f"{c.name}.longform" in results.measures
    ]
    return "Prose", ("condition", *(name for _, name in PROSE)), rows


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
