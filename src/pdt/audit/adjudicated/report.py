"""The final rates as Markdown and as a page: Table 3 first, screened and adjudicated side by side.

Paper: §7.2, Table 3.
"""

from collections.abc import Sequence

from pdt.audit.adjudicated.results import Adjudicated, Difference, Rests
from pdt.audit.agreement import CAUTION
from pdt.audit.directory import StoredAudit
from pdt.audit.report import work_tables
from pdt.evaluation.report.html import render_page
from pdt.evaluation.report.shown import Table, gate_row, percent
from pdt.evaluation.report.tables import markdown_tables

SHOWN_DIFFERENCES = 40


def gate_table(final: Adjudicated, documents: int, sampled: int) -> Table:
    """Table 3 with both verdicts."""
    rows = []
    for row in final.gates:
        question, name, screened, asked, source, before = gate_row(row.screened, documents)
        _, _, adjudicated, _, _, after = gate_row(row.final, sampled)
        shown = adjudicated if row.rests is Rests.ADJUDICATED else f"– ({row.rests})"
        changed = "" if before == after else f" (was {before})"
        rows.append([question, name, screened, shown, asked, source, after + changed])
    headings = ("question", "evidence", "screened", "adjudicated", "asked for", "source", "verdict")
    return "Evidence gates, screened and adjudicated", headings, rows


def all_tables(
    final: Adjudicated,
    audit: StoredAudit,
    found: Sequence[Difference],
    documents: int,
) -> list[Table]:
    plan = audit.closed.plan
    return [
        gate_table(final, documents, len(plan.documents)),
        (
            "Every rate that rests on judgments",
            ("measure", "screened, all documents", "screened, audited items", "adjudicated"),
            [
                [row.name, percent(row.screened), percent(row.sample), percent(row.adjudicated)]
                for row in final.measures
            ],
        ),
        (
            "Screens against people, on the same items",
            ("measure", "share"),
            [
                [name.removeprefix("screens.").replace("_", " "), percent(m)]
                for name, m in final.against_people.items()
            ],
        ),
        (
            f"Where people and the {final.screen} screen differ: {len(found)} of "
            f"{len(audit.queue.items)} items"
            + (f", the first {SHOWN_DIFFERENCES}" if len(found) > SHOWN_DIFFERENCES else ""),
            ("condition", "document", "lane", "claim", "screen", "people"),
            [
                [
                    row.condition,
                    row.record_id,
                    str(row.lane),
                    f"{row.words} ({row.claim})",
                    "found" if row.screen else "not found",
                    row.people,
                ]
                for row in found[:SHOWN_DIFFERENCES]
            ],
        ),
        *work_tables(audit.work),
    ]


def facts_of_audit(final: Adjudicated, audit: StoredAudit) -> list[str]:
    plan, work = audit.closed.plan, audit.work
    nodes = "" if plan.nodes is None else f", {plan.nodes} plan nodes of each"
    undecided = work.final["cannot tell"]
    return [
        f"Rates are adjudicated where the column says so: {len(audit.queue.items)} items of the "
        f"conditions {', '.join(plan.conditions)}, {len(plan.documents)} of "
        f"{plan.documents_of_verdict} documents{nodes}; each judged by two people and, where they "
        "differ, settled by a third.",
        "Intervals are over the audited documents. A gate on a bound needs eight of them.",
        f"{undecided} items ended with `cannot tell`; they count against the model.",
        CAUTION,
        f"Verdict `{final.verdict[:16]}`, audit `{final.audit[:16]}`, {audit.closed.votes} votes, "
        f"last link `{audit.closed.head[:16]}`.",
    ]


def render_markdown(
    final: Adjudicated, audit: StoredAudit, found: Sequence[Difference], documents: int
) -> str:
    lines = ["# Final rates", "", *(f"- {fact}" for fact in facts_of_audit(final, audit))]
    return "\n".join([*lines, *markdown_tables(all_tables(final, audit, found, documents))]) + "\n"


def render_html(
    final: Adjudicated, audit: StoredAudit, found: Sequence[Difference], documents: int
) -> str:
    return render_page(
        "Final rates",
        [row.final.verdict for row in final.gates],
        facts_of_audit(final, audit),
        all_tables(final, audit, found, documents),
    )
