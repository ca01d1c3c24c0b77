"""Outline completion: is every plan node that owns facts written out by the lane that holds it?

Paper: Table 3 (outline completion).
"""

from collections.abc import Sequence

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts


def outline_completion(
    document: HeldOutDocument, judged: LaneFacts, lane_of_plan: Sequence[int]
) -> float | None:
    """The share of plan nodes with owned facts whose facts are all stated at their address.

    Openings and closings own nothing, so there is nothing to find; they are not counted.
    """
    facts_of_node: dict[tuple[int, int], list[int]] = {}
    for number, fact in enumerate(document.facts):
        facts_of_node.setdefault((fact.owner_lane, fact.owner_node), []).append(number)
    complete = [
        all(judged.stated_KF[lane_of_plan[plan]][number] for number in numbers)
        for (plan, _), numbers in facts_of_node.items()
    ]
    return sum(complete) / len(complete) if complete else None
