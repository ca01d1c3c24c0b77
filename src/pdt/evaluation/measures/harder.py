"""The harder gates on plans: does a lane read its plan node by node, all along, and anywhere?

Table 3 is met by a plan that only chooses a lane's first sentence. These are not.

Paper: §3.4, §7.1; the gates are ours (H1 to H6).
"""

from functools import partial

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.bootstrap import Measure, Values, ratio
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.measures.longform import one_spaced
from pdt.evaluation.measures.writing import plan_contrasts
from pdt.evaluation.protocol.conditions import (
    DEALT_ANEW,
    DROPPED,
    OPENING,
    ORACLE,
    RANGE,
    TRANSPLANT,
    ZERO_FROM,
)

EXECUTOR = ("owner_recall", "leakage", "completion", "longform")
FEW_FACTS, MANY_FACTS = 6, 14
"""Documents of at most so many facts, and of at least so many: the ends of 4 to 20."""


def dealt_measures(evidence: Evidence) -> Measured:
    """H1: the executor where only the plan knows the division.

    The corpus's own such documents; where it has none, its documents with their facts dealt anew.
    """
    dealt = any(not document.told for document in evidence.raw.documents)
    measures: Measured = {}
    for rate in EXECUTOR:
        own = evidence.of(f"{ORACLE.name}.{rate}", lambda document: not document.told)
        anew = evidence.of(f"{DEALT_ANEW.name}.{rate}")
        measures[f"dealt.{rate}"] = evidence.boot.mean(own if dealt else anew)
    return measures


def uncoined_measures(evidence: Evidence) -> Measured:
    """H2: executor, planner and swap where no section needs anything of another."""
    of = partial(evidence.of, only=lambda document: document.dependencies == 0)
    boot = evidence.boot
    measures = {rate: boot.mean(of(f"{ORACLE.name}.{rate}")) for rate in EXECUTOR}
    base = evidence.settings.plan
    measures[f"{base}_recall"] = boot.mean(of(f"{base}.owner_recall"))
    measures["moved_recall"] = boot.mean(of("swap.moved_recall"))
    measures |= plan_contrasts(of, boot, base)
    return {f"uncoined.{name}": measure for name, measure in measures.items()}


def node_measures(evidence: Evidence) -> Measured:
    """H3: one node exchanged for another lane's, or dropped."""
    rates: dict[str, dict[str, float]] = {}

    def note(name: str, record_id: str, cells: list[int]) -> None:
        if cells:
            rates.setdefault(name, {})[record_id] = sum(cells) / len(cells)

    for (condition, name), written in evidence.texts.items():
        document, judged = evidence.documents[name], evidence.screened.get((condition, name))
        drawn = document.transplant
        if condition not in (TRANSPLANT.name, DROPPED.name) or judged is None or drawn is None:
            continue
        lane = written.lane_of_plan[drawn.lane]
        old = document.facts_at(drawn.lane, drawn.node)
        new = document.facts_at(drawn.from_lane, drawn.from_node)
        rest = [
            number
            for number, fact in enumerate(document.facts)
            if fact.owner_lane == drawn.lane and number not in old
        ]
        note(f"{condition}.old", name, [judged.mentioned_KF[lane][n] for n in old])
        note(f"{condition}.rest", name, [judged.stated_KF[lane][n] for n in rest])
        if condition == TRANSPLANT.name:
            note(f"{condition}.new", name, [judged.stated_KF[lane][n] for n in new])
    return {name: evidence.boot.mean(values) for name, values in rates.items()}


def persistence_measures(evidence: Evidence) -> Measured:
    """H4: what zeroing the plan from a block on costs, of facts not yet begun there."""
    measures: Measured = {}
    for block, zeroed in ZERO_FROM.items():
        kept: dict[str, float] = {}
        left: dict[str, float] = {}
        for name, document in evidence.documents.items():
            keys = ((ORACLE.name, name), (zeroed.name, name))
            whole, cut = (evidence.screened.get(key) for key in keys)
            if whole is None or whole.place_KF is None or cut is None:
                continue
            facts = not_begun(document, evidence.texts[keys[0]], whole, block)
            if facts:
                for rates, judged in ((kept, whole), (left, cut)):
                    found = [judged.stated_KF[document.facts[n].owner_lane][n] for n in facts]
                    rates[name] = sum(found) / len(found)
        measures |= _by_division(evidence, f"persistence.from_{block}", kept, left)
    return measures


def _by_division(evidence: Evidence, name: str, kept: Values, left: Values) -> Measured:
    """The difference over all documents, and apart: from its own words a lane may guess a division
    that the request tells, never one that was dealt."""
    boot, documents = evidence.boot, evidence.documents
    measures: Measured = {
        f"{name}.recall": boot.mean(kept),
        f"{name}.zeroed": boot.mean(left),
        f"{name}.cost": boot.difference(kept, left),
    }
    for kind, told in (("told", True), ("dealt", False)):
        of_kind = [
            {n: value for n, value in values.items() if documents[n].told is told}
            for values in (kept, left)
        ]
        measures[f"{name}.cost_{kind}"] = boot.difference(*of_kind)
    return measures


def not_begun(
    document: HeldOutDocument, written: Written, judged: LaneFacts, block: int
) -> list[int]:
    """The facts that no sentence speaks of which their lane began before this block.

    Of lanes that write such a block at all. A fact that is never written was not begun.
    """
    assert judged.place_KF is not None
    found = []
    for number, fact in enumerate(document.facts):
        address = written.lane_of_plan[fact.owner_lane]
        lane = written.lanes[address]
        if len(lane.block_ends) >= block:
            border = len(one_spaced(lane.text[: lane.block_ends[block - 1]]))
            place = judged.place_KF[address][number]
            if place < 0 or place >= border:
                found.append(number)
    return found


def opening_measures(evidence: Evidence) -> Measured:
    """H5: of the facts that follow a sibling's first sentence, the share that is the plan's."""
    shares: dict[str, float] = {}
    for name, document in evidence.documents.items():
        written = evidence.texts.get((OPENING.name, name))
        judged = evidence.screened.get((OPENING.name, name))
        if written is None or judged is None or judged.place_KF is None:
            continue
        own = told = 0
        for plan, lane in enumerate(written.lane_of_plan):
            border = len(document.sibling_opening(plan).text)
            for number, fact in enumerate(document.facts):
                if judged.stated_KF[lane][number] and judged.place_KF[lane][number] >= border:
                    told += 1
                    own += fact.owner_lane == plan
        if told:
            shares[name] = own / told
    return {"opening.plans": evidence.boot.mean(shares)}


def range_measures(evidence: Evidence) -> Measured:
    """H6: recall on altered documents, and on those with few and many facts, over base recall."""
    plan = evidence.settings.plan
    base = evidence.of(f"{plan}.owner_recall")
    measures: Measured = {
        f"range.{condition.name}": evidence.boot.ratio(
            evidence.of(f"{condition.name}.owner_recall"), base
        )
        for condition in RANGE
    }
    counts = {name: len(document.facts) for name, document in evidence.documents.items()}
    # Small documents divide evenly only when they are dealt, and then their plans are given.
    dealt = evidence.of(f"{ORACLE.name}.owner_recall", lambda document: not document.told)
    every = {**dealt, **base}
    few = {name: value for name, value in every.items() if counts[name] <= FEW_FACTS}
    many = {name: value for name, value in every.items() if counts[name] >= MANY_FACTS}
    for group, values in (("few_facts", few), ("many_facts", many)):
        measures[f"range.{group}"] = _over_all(evidence, values, every)
        measures[f"range.{group}_recall"] = evidence.boot.mean(values)
    return measures


def _over_all(evidence: Evidence, part: Values, whole: Values) -> Measure | None:
    """The mean of some documents over the mean of all of them, resampled together."""
    if not part:
        return None
    found = evidence.boot.statistic(
        [
            {name: part.get(name, 0.0) for name in whole},
            {name: float(name in part) for name in whole},
            whole,
        ],
        lambda total, share, mean: ratio(ratio(total, share), mean),
    )
    return None if found is None else found.model_copy(update={"documents": len(part)})
