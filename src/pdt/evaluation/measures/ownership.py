"""Fact ownership: does each fact stand in the lane whose plan owns it, and nowhere it may not?

Every rate is of one document; means and intervals are over documents. `lane_of_plan[k]` is the
physical lane that holds the outline of teacher lane k under the condition (its address).

Paper: §7.1, §7.2, Table 3.
"""

from collections.abc import Callable, Iterable, Sequence

from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact
from pdt.evaluation.lines.judgments import LaneFacts, TableKF


def owner_recall(
    document: HeldOutDocument,
    judged: LaneFacts,
    lane_of_plan: Sequence[int],
    only: Callable[[HeldOutFact], bool] = lambda fact: True,
) -> float | None:
    """The share of facts stated at their owner's address; `only` restricts it to some facts."""
    return _share(
        judged.stated_KF[lane_of_plan[fact.owner_lane]][number]
        for number, fact in enumerate(document.facts)
        if only(fact)
    )


def leakage(
    document: HeldOutDocument, judged: LaneFacts, lane_of_plan: Sequence[int]
) -> float | None:
    """Of all lanes and facts they neither own nor may mention, the share that is there."""
    return _share(
        judged.mentioned_KF[address][number]
        for plan, address in enumerate(lane_of_plan)
        for number, fact in enumerate(document.facts)
        if plan != fact.owner_lane and plan not in fact.permitted_lanes
    )


def reference_recall(
    document: HeldOutDocument, judged: LaneFacts, lane_of_plan: Sequence[int]
) -> float | None:
    """Of the references the teacher made, the share that the same lanes make."""
    return _share(
        judged.mentioned_KF[lane_of_plan[plan]][number]
        for number, fact in enumerate(document.facts)
        for plan in fact.reference_lanes
    )


def hard_negative_rate(judged: LaneFacts) -> float | None:
    """The share of lanes and altered claims in which the lane says the falsehood."""
    return _share(cell for lane in judged.hard_negative_KF for cell in lane)


def altered_rate(
    document: HeldOutDocument, judged: LaneFacts, lane_of_plan: Sequence[int]
) -> float | None:
    """The share of facts that their owner tells with a value the source does not give."""
    return _at_owner(document, judged.altered_KF, lane_of_plan)


def wrong_doer_rate(
    document: HeldOutDocument, judged: LaneFacts, lane_of_plan: Sequence[int]
) -> float | None:
    """The share of facts that their owner tells of someone who did not do it."""
    return _at_owner(document, judged.wrong_doer_KF, lane_of_plan)


def supported_rate(judged: LaneFacts) -> float | None:
    """Of what lanes say of the facts, the share that the source says: right value, right doer."""
    if judged.altered_KF is None or judged.wrong_doer_KF is None:
        return None
    tables = (judged.stated_KF, judged.altered_KF, judged.wrong_doer_KF)
    true, *false = (sum(map(sum, table)) for table in tables)
    said = true + sum(false)
    return true / said if said else None


def _at_owner(
    document: HeldOutDocument, table_KF: TableKF | None, lane_of_plan: Sequence[int]
) -> float | None:
    """The mean of a table where owners speak; None where a screen cannot tell."""
    if table_KF is None:
        return None
    return _share(
        table_KF[lane_of_plan[fact.owner_lane]][number]
        for number, fact in enumerate(document.facts)
    )


def duplication(document: HeldOutDocument, judged: LaneFacts) -> float | None:
    """The share of facts that two lanes or more state."""
    return _share(
        sum(lane[number] for lane in judged.stated_KF) > 1 for number in range(len(document.facts))
    )


def _share(cells: Iterable[int]) -> float | None:
    """The mean of 0s and 1s, None when there is none."""
    found = [int(cell) for cell in cells]
    return sum(found) / len(found) if found else None
