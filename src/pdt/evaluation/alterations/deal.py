"""Facts dealt to lanes at random: a division that nothing but the plans knows."""

import re
from dataclasses import dataclass

from pdt.evaluation.alterations.alteration import draws
from pdt.evaluation.alterations.requests import asked_by_hand
from pdt.evaluation.lines.document import DEALT
from pdt.teacher.answer import FactRoles, LaneRole, Plan, PlanNode
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole

_NAMING = re.compile(r", and (?:give|recall) .*\.$")
"""What a Chronicle objective says of coined things, which nobody owes here."""


@dataclass(frozen=True)
class DealAnew:
    """Every node that owns facts goes to a lane and place drawn at random; the others are gone.

    No node says what a section is about, no lane owes another anything, and the request does not
    tell the division. The teacher's sections stay those of the old division: only the plans count.
    """

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        asked = asked_by_hand(document, DEALT)
        if asked is None:
            return None
        plans = document.answer.plans
        nodes = [node for plan in plans for node in plan.nodes if node.owned_facts]
        draws(document, "deal").shuffle(nodes)
        dealt = [nodes[lane :: len(plans)] for lane in range(len(plans))]
        if not all(dealt):
            return None
        owner = {
            fact: lane
            for lane, own in enumerate(dealt)
            for node in own
            for fact in node.owned_facts
        }
        answer = asked.answer.model_copy(
            update={
                "request": asked.answer.request.partition(" With the ")[0],
                "plans": tuple(
                    Plan(nodes=_covering(own, len(document.answer.sections[lane].paragraphs)))
                    for lane, own in enumerate(dealt)
                ),
                "roles": tuple(
                    FactRoles(
                        fact_id=entry.fact_id,
                        lanes=tuple(
                            LaneRole(
                                role=FactRole.OWNER
                                if owner.get(entry.fact_id) == lane
                                else FactRole.ABSENT
                            )
                            for lane in range(len(plans))
                        ),
                    )
                    for entry in document.answer.roles
                ),
                "dependencies": (),
            }
        )
        settings = {**document.teacher.settings, "division": DEALT}
        teacher = document.teacher.model_copy(update={"settings": settings})
        return asked.model_copy(update={"answer": answer, "teacher": teacher})


def _covering(nodes: list[PlanNode], paragraphs: int) -> tuple[PlanNode, ...]:
    """Nodes that own what they own and nothing else, over all paragraphs of a section."""
    return tuple(
        PlanNode(
            objective=_NAMING.sub(".", node.objective),
            owned_facts=node.owned_facts,
            target_paragraphs=tuple(
                range(number, paragraphs) if number == len(nodes) - 1 else (number,)
            )
            or (paragraphs - 1,),
        )
        for number, node in enumerate(nodes)
    )
