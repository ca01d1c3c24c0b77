"""Plans, sections and their order. Paper: §4.2, Stage B."""

from pdt.config import ContractLimits
from pdt.teacher.answer import Answer
from pdt.teacher.checks.rules import Failures
from pdt.teacher.document import TaughtDocument


def check_plans(
    document: TaughtDocument, limits: ContractLimits, found: Failures, *, lanes: int
) -> None:
    answer = document.answer
    if (len(answer.plans), len(answer.sections)) != (lanes, lanes):
        found.add(
            "lane_count",
            f"{len(answer.plans)} plans and {len(answer.sections)} sections",
            f"{lanes} of each",
        )
    if sorted(answer.lane_at_position) != list(range(lanes)):
        found.add("presentation_order", answer.lane_at_position, f"each of 0 to {lanes - 1} once")
    for lane, plan in enumerate(answer.plans):
        if not limits.plan_nodes.holds(len(plan.nodes)):
            found.add("plan_nodes", f"{len(plan.nodes)} nodes", limits.plan_nodes, lane=lane)
    for lane, section in enumerate(answer.sections):
        count = len(section.paragraphs)
        if not limits.section_paragraphs.holds(count):
            found.add(
                "section_paragraphs", f"{count} paragraphs", limits.section_paragraphs, lane=lane
            )
    for lane in range(min(len(answer.plans), len(answer.sections))):
        _check_targets(answer, lane, found)
    _check_known_facts(document, found)


def _check_targets(answer: Answer, lane: int, found: Failures) -> None:
    paragraphs = list(range(len(answer.sections[lane].paragraphs)))
    targets = [list(node.target_paragraphs) for node in answer.plans[lane].nodes]
    if [paragraph for target in targets for paragraph in target] != paragraphs:
        found.add("target_paragraphs", targets, f"{paragraphs} in order, each once", lane=lane)


def _check_known_facts(document: TaughtDocument, found: Failures) -> None:
    known = {fact.id for fact in document.inventory.facts}
    for lane, plan in enumerate(document.answer.plans):
        for index, node in enumerate(plan.nodes):
            for fact in (*node.owned_facts, *node.reference_facts):
                if fact not in known:
                    found.add("known_facts", fact, "a fact id", lane=lane, node=index, fact=fact)
    for roles in document.answer.roles:
        if roles.fact_id not in known:
            found.add("known_facts", roles.fact_id, "a fact of the inventory", fact=roles.fact_id)
