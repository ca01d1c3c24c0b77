"""The report as one self-contained page: verdicts, plots, tables, and what lanes wrote.

Every text in it is escaped, and no request leaves it.

Paper: §7, Table 3.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.protocol.conditions import COINED, GENERATED, SCORED
from pdt.evaluation.protocol.evidence_gates import Verdict
from pdt.evaluation.report.facts import facts_of_run
from pdt.evaluation.report.plots import Bar, bars, trace
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import MARK, Table
from pdt.evaluation.report.tables import all_tables

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
CLASS = {
    Verdict.MET: "met",
    Verdict.UNMET: "unmet",
    Verdict.NOT_MEASURED: "open",
    Verdict.NOT_APPLICABLE: "open",
}


def render_html(results: Results, raw: Raw) -> str:
    """The whole page."""
    plots = "".join(
        f"<h2>{escape(title)}</h2>{body}" for title, body in _plots(results, raw) if body
    )
    return render_page(
        "Evaluation",
        [gate.verdict for gate in results.gates],
        facts_of_run(results, raw),
        all_tables(results, raw),
        plots=plots,
        after=_sample(results, raw),
    )


def render_page(
    title: str,
    verdicts: Sequence[Verdict],
    facts: Sequence[str],
    tables: Sequence[Table],
    *,
    plots: str = "",
    after: str = "",
) -> str:
    """A page of verdicts, facts and tables, the first of which is of gates."""
    style = (resources.files("pdt.evaluation.report") / "html.css").read_text(encoding="utf-8")
    listed = "".join(f"<li>{escape(fact.replace('`', ''))}</li>" for fact in facts)
    gates, *others = tables
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>pdt {title.lower()}</title><style>{style}</style></head><body>
<h1>{title}</h1>{_verdict(verdicts)}<ul>{listed}</ul>
{_table(gates)}
{plots}
{"".join(_table(table) for table in others)}
{after}
</body></html>
"""


def _verdict(verdicts: Sequence[Verdict]) -> str:
    counts = {v: sum(verdict is v for verdict in verdicts) for v in Verdict}
    words = ", ".join(
        f'<span class="{CLASS[v]}">{count} {escape(MARK[v].lower())}</span>'
        for v, count in counts.items()
        if count
    )
    return f'<p class="verdict">Evidence gates: {words}.</p>'


def _table(table: Table) -> str:
    title, headings, rows = table
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    classes = {MARK[verdict]: name for verdict, name in CLASS.items()}
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{classes[cell]}">{escape(cell)}</td>'
            if cell in classes
            else f"<td>{escape(cell)}</td>"
            for cell in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<h2>{escape(title)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _plots(results: Results, raw: Raw) -> Iterator[tuple[str, str]]:
    """Recall, addresses, Δ, bits, agreement and cost: each measure with its interval."""
    m = results.measures

    def rows(pairs: list[tuple[str, str, str]]) -> list[Bar]:
        return [Bar(label, m[name], tone) for label, name, tone in pairs if name in m]

    def asked(measure: str) -> list[tuple[float, str]]:
        found = (g.gate.threshold[1] for g in results.gates if g.gate.measure == measure)
        return [(threshold, f"{threshold:.0%}") for threshold in found]

    written = [(c.title, f"{c.name}.owner_recall", "a") for c in GENERATED]
    yield "Owner recall by condition", bars(rows(written), lines=asked("oracle.owner_recall"))
    leaks = [(c.title, f"{c.name}.leakage", "b") for c in GENERATED]
    yield "Unauthorized leakage by condition", bars(rows(leaks), lines=asked("oracle.leakage"))
    moved = [
        ("at moved addresses", "swap.moved_recall", "a"),
        ("at unmoved addresses", "swap.unmoved_recall", "c"),
    ]
    yield "After the D1/D2 swap: recall where plans went and where they were", bars(rows(moved))
    kinds = (("dependency", "a"), ("other", "c"))
    deltas = [
        (f"{c.title}, {kind}", f"delta.{c.name}.{kind}", tone)
        for c in SCORED
        for kind, tone in kinds
    ]
    yield (
        "Δ by token kind: NLL against the intact bus, nats a token (Eq. 10)",
        bars(rows(deltas), percent=False, digits=3),
    )
    received = [(c.title, f"bits.{c.name}.received", "a") for c in SCORED]
    h = [(m["bits.h"].estimate, f"h = {m['bits.h'].estimate:.2f}")] if "bits.h" in m else []
    yield (
        "Bits of a coined choice that reached its receiver",
        bars(rows(received), percent=False, digits=2, lines=h),
    )
    agree = [(c.title, f"agreement.{c.name}.agree", "a") for c in COINED]
    chance = [(m[name].estimate, "chance") for name in ("agreement.bus.chance",) if name in m]
    yield (
        "Coined words in free generation: owner and receiver agree",
        bars(rows(agree), lines=[*chance, *asked("agreement.bus.agree")]),
    )
    cost = [
        (side, f"execution.{side.replace(' ', '_')}.seconds", "a") for side in (PACKED, SERIAL, ONE)
    ]
    yield (
        "Seconds for a complete answer; one lane writes one section of it",
        bars(rows(cost), percent=False, digits=2),
    )
    packed = raw.execution.of_side(PACKED) if raw.execution else ()
    if packed:
        yield (
            "Time of every packed round of one answer; dashed lines are barriers",
            trace(packed[0].round_seconds, block_tokens=results.settings.block_tokens),
        )


def _sample(results: Results, raw: Raw) -> str:
    """What the lanes of the first document wrote under each condition."""
    if not raw.documents:
        return ""
    first = raw.documents[0]
    titles = {c.name: c.title for c in GENERATED}
    blocks = []
    for written in raw.written:
        if written.record_id != first.record_id:
            continue
        lanes = "".join(
            f'<div><span class="key">lane {lane}</span><p>{escape(section.text)}</p></div>'
            for lane, section in enumerate(written.lanes)
        )
        opened = " open" if written.condition in ("oracle", results.settings.plan) else ""
        blocks.append(
            f"<details{opened}><summary>{escape(titles[written.condition])}</summary>"
            f'<div class="lanes">{lanes}</div></details>'
        )
    return f"<h2>What was written: {escape(first.record_id)}</h2>{''.join(blocks)}"
