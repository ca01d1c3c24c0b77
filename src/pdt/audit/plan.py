"""What an audit is of: drawn and sealed before anybody judges.

When the queue is larger than people can judge, whole documents are drawn, and within a document
whole plan nodes with all their facts, for every lane and condition alike. Each document then has a
whole table of lanes and drawn facts, so that every measure reads it as it reads a screen's; recall,
leakage and completion of the drawn nodes estimate those of the document without bias.

Paper: §7.2.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from pdt.config.node import Share
from pdt.contract import Contract, Id, Index, Line, Sha256
from pdt.errors import UsageError
from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact

T = TypeVar("T")


class DrawnDocument(Contract):
    """One document of the sample."""

    record_id: Id
    facts: tuple[Id, ...] | None
    """The facts of the drawn plan nodes; none when all are judged."""
    weight: Annotated[float, Field(ge=1)]
    """How many of the verdict's items an item of this document stands for: one over its chance."""


class AuditPlan(Contract):
    """What is judged and how; nothing of it changes after the audit is opened."""

    schema_version: Literal["pdt.audit/1"] = "pdt.audit/1"
    """The version of this contract."""
    name: Line
    """What people see at the top of the page."""
    verdict: Sha256
    """Of the verdict's manifest, which names every file of it."""
    conditions: tuple[Id, ...]
    """The conditions that are judged."""
    documents: tuple[DrawnDocument, ...]
    """The sample."""
    documents_of_verdict: Index
    """How many the verdict has."""
    nodes: Annotated[int, Field(ge=1)] | None
    """Plan nodes drawn of each document; none when all are judged."""
    seed: Index
    """Of the sample, which anybody can draw again from the verdict."""
    seats: Annotated[int, Field(ge=2)]
    """Annotators; each item is judged from two of their seats."""
    repeat_share: Share = 0.05
    """Of a seat's items return unannounced."""
    check_share: Share = 0.05
    """Of the items on which two annotators agree go to adjudication too."""
    training: Sha256
    """Of the examples with known answers."""
    pass_mark: Index
    """Of the training round; below it the round begins again."""


def draw_documents(
    documents: Sequence[HeldOutDocument],
    *,
    verdict: str,
    seed: int,
    most: int | None,
    nodes: int | None,
) -> tuple[DrawnDocument, ...]:
    """The sample, in the verdict's order: at most `most` documents, `nodes` nodes of each."""
    if most is not None and most > len(documents):
        raise UsageError(
            f"--documents is {most}, and the verdict has {len(documents)}. Give that or fewer."
        )

    def place(*parts: object) -> str:
        words = "|".join(map(str, (seed, verdict, *parts)))
        return hashlib.sha256(words.encode()).hexdigest()

    chosen = _lowest(documents, most, lambda document: place("document", document.record_id))

    def drawn(document: HeldOutDocument) -> DrawnDocument:
        owners = list(dict.fromkeys(map(_node, document.facts)))
        some = _lowest(owners, nodes, lambda node: place("node", document.record_id, *node))
        facts = tuple(fact.id for fact in document.facts if _node(fact) in some)
        return DrawnDocument(
            record_id=document.record_id,
            facts=None if nodes is None else facts,
            weight=len(documents) / len(chosen) * len(owners) / len(some),
        )

    return tuple(map(drawn, chosen))


def drawn_facts(document: HeldOutDocument, drawn: DrawnDocument) -> list[int]:
    """The places of the drawn facts among the document's."""
    return [
        place
        for place, fact in enumerate(document.facts)
        if drawn.facts is None or fact.id in drawn.facts
    ]


def _node(fact: HeldOutFact) -> tuple[int, int]:
    return fact.owner_lane, fact.owner_node


def _lowest(things: Iterable[T], count: int | None, place: Callable[[T], str]) -> list[T]:
    """`count` of them by their places, in the order they came in."""
    everything = list(things)
    chosen = sorted(everything, key=place)[:count]
    return [thing for thing in everything if thing in chosen]
