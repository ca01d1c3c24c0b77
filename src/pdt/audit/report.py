"""The closed audit in words: agreement, work, and what each number can bear."""

from pdt.audit.agreement import CAUTION, STATISTICS
from pdt.audit.plan import AuditPlan
from pdt.audit.work import AuditWork
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.report.shown import Table, percent, plain
from pdt.evaluation.report.tables import markdown_tables

SHARES = frozenset({"raw agreement"})


def work_tables(work: AuditWork) -> list[Table]:
    """Agreement by group, then people."""
    groups = [
        [
            group.group,
            str(group.items),
            str(group.differed),
            str(group.overruled),
            *(_shown(name, group.measures.get(name)) for name in STATISTICS),
        ]
        for group in work.groups
    ]
    people = [
        [
            f"person {row.person}",
            str(row.answers),
            str(row.withdrawn),
            "–" if row.seconds is None else "{1:.1f} ({0:.1f} to {2:.1f})".format(*row.seconds),
            str(row.repeats),
            percent(row.self_agreement),
        ]
        for row in work.people
    ]
    headings = ("items", "number", "differed", "overruled", *STATISTICS)
    return [
        ("Agreement of two annotators, intervals over documents", headings, groups),
        (
            "People",
            ("account", "answers", "taken back", "seconds an item", "returned", "self-agreement"),
            people,
        ),
    ]


def render_report(plan: AuditPlan, work: AuditWork, votes: int) -> str:
    sampled = len(plan.documents)
    lines = [
        f"# Audit: {plan.name}",
        "",
        f"- {work.groups[0].items} items: conditions {', '.join(plan.conditions)}; {sampled} of "
        f"{plan.documents_of_verdict} documents"
        + ("." if plan.nodes is None else f", {plan.nodes} plan nodes of each."),
        f"- {votes} votes in the chain, training included. Final answers: "
        + ", ".join(f"{count} {answer}" for answer, count in work.final.items())
        + ".",
        f"- {CAUTION}",
        "- *Overruled* are checks in which two annotators agree and the adjudicator does not.",
    ]
    return "\n".join([*lines, *markdown_tables(work_tables(work))]) + "\n"


def _shown(name: str, measure: Measure | None) -> str:
    if measure is None:
        return "undefined"
    return percent(measure) if name in SHARES else plain(measure, 2)
