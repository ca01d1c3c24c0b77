"""The queue: every condition, lane and claim of the sample as one item.

A claim is a fact's statement or its hard negative, so facts that a lane should not tell and altered
ones stand among the rest. What follows here is the unblinded side; `blinding` decides what a person
sees of it.

Paper: §7.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pdt.audit.plan import AuditPlan, drawn_facts
from pdt.contract import Contract, Id, Index, Line
from pdt.errors import ContractBroken
from pdt.evaluation.lines.document import HeldOutFact
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.longform import paragraphs_of, sentences_of
from pdt.provenance import sha256_json

Paragraphs = tuple[tuple[str, ...], ...]
"""The sentences of each paragraph."""


class Claim(StrEnum):
    STATEMENT = "statement"
    HARD_NEGATIVE = "hard negative"


class AuditText(Contract):
    """What one lane wrote under one condition, split into sentences."""

    condition: Id
    record_id: Id
    lane: Index
    paragraphs: Paragraphs

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for paragraph in self.paragraphs for sentence in paragraph)


class AuditItem(Contract):
    """One decision that two people make."""

    number: Index
    """Its place in the unblinded queue."""
    text: Index
    """Which text it is about."""
    fact_id: Id
    claim: Claim
    words: Line
    """The claim as it is shown."""
    weight: float


@dataclass(frozen=True)
class Queue:
    """All items of an audit, with the texts they are about."""

    plan: AuditPlan
    texts: tuple[AuditText, ...]
    items: tuple[AuditItem, ...]

    def seal(self, key: bytes) -> str:
        """The first link of the chain of votes: plan, texts, items and the key that blinds them."""
        return sha256_json(
            {
                "plan": self.plan.model_dump(mode="json"),
                "texts": [text.model_dump(mode="json") for text in self.texts],
                "items": [item.model_dump(mode="json") for item in self.items],
                "key": key.hex(),
            }
        )


def build_queue(plan: AuditPlan, raw: Raw) -> Queue:
    """The queue that follows from a verdict and a plan; `pdt verify` builds it again."""
    documents, answered = {document.record_id for document in raw.documents}, raw.answered()
    wrote = {(row.condition, row.record_id): row for row in raw.written}
    texts: list[AuditText] = []
    items: list[AuditItem] = []
    for drawn in plan.documents:
        if drawn.record_id not in documents:
            raise ContractBroken(
                f"The plan draws {drawn.record_id}, which the verdict does not have.",
                "Give the verdict that the audit is of.",
            )
        for condition in plan.conditions:
            row = wrote.get((condition, drawn.record_id))
            if row is None:
                continue  # this condition was not run on this document
            document = answered(row)
            facts = [document.facts[place] for place in drawn_facts(document, drawn)]
            for lane, section in enumerate(row.lanes):
                items += _items(facts, drawn.weight, text=len(texts), first=len(items))
                texts.append(
                    AuditText(
                        condition=condition,
                        record_id=drawn.record_id,
                        lane=lane,
                        paragraphs=tuple(
                            tuple(sentences_of(part)) for part in paragraphs_of(section.text)
                        ),
                    )
                )
    return Queue(plan, tuple(texts), tuple(items))


def _items(
    facts: Sequence[HeldOutFact], weight: float, *, text: int, first: int
) -> list[AuditItem]:
    claims = [
        (fact, claim, words)
        for fact in facts
        for claim, words in (
            (Claim.STATEMENT, fact.statement),
            (Claim.HARD_NEGATIVE, fact.hard_negative),
        )
    ]
    return [
        AuditItem(
            number=number, text=text, fact_id=fact.id, claim=claim, words=words, weight=weight
        )
        for number, (fact, claim, words) in enumerate(claims, start=first)
    ]
