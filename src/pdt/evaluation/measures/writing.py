"""Measures of free generation: means of every rate, and the plan contrasts of Table 3.

Paper: §7.1, §7.2, Table 3.
"""

from collections.abc import Callable

from pdt.evaluation.measures.bootstrap import Bootstrap, Values
from pdt.evaluation.measures.evidence import Evidence, Measured

Of = Callable[[str], Values]
"""From the name of a rate to its documents."""
SIBLING = (
    "owner_recall", "reference_recall", "duplication", "shared_sentences", "longform", "leakage",
)  # fmt: skip


def writing_measures(evidence: Evidence) -> Measured:
    """Ownership, completion and prose of every condition, and the plan contrasts of Table 3."""
    of, boot, base = evidence.of, evidence.boot, evidence.settings.plan
    measures: Measured = {
        name: boot.mean(values)
        for name, values in evidence.rates.items()
        if not name.startswith("_")
    }
    measures |= plan_contrasts(of, boot, base)
    for rate in SIBLING:
        measures[f"sibling.{rate}"] = boot.difference(of(f"{base}.{rate}"), of(f"self_only.{rate}"))
    return measures


def plan_contrasts(of: Of, boot: Bootstrap, base: str) -> Measured:
    """The planner's rows and the swap's. Paper: Table 3."""
    recall = of(f"{base}.owner_recall")
    # Table 3 asks these of learned plans; of the teacher's they have names that no gate reads.
    asked = "" if base == "learned" else f"{base}_"
    measures: Measured = {}
    if base == "learned":
        measures["planner.retained"] = boot.ratio(recall, of("oracle.owner_recall"))
    measures[f"{asked}planner.zero_drop"] = boot.difference(recall, of("zero.owner_recall"))
    measures[f"{asked}swap.retained"] = boot.ratio(
        of("swap.moved_recall"), of(f"_{base}.at_swapped")
    )
    measures[f"{asked}swap.moved_minus_unmoved"] = boot.difference(
        of("swap.moved_recall"), of("swap.unmoved_recall")
    )
    return measures
