"""Edits that depend on the document: the same condition is another intervention in each.

Paper: §7.1, §7.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pdt.evaluation.lines.document import HeldOutDocument, Transplant
from pdt.generation.by_document import ByDocument
from pdt.generation.interventions import (
    DropNode,
    ExchangeProducers,
    Intervention,
    MutateProducers,
    ReplaceNode,
)


class DocumentEdit(Protocol):
    """Anything that names an intervention once the documents of a batch are known."""

    def on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> Intervention:
        """`lane_of_plan` is, by document, the lane that holds each teacher lane's outline."""
        ...


@dataclass(frozen=True)
class MutateOwner:
    """Every note of the lane that owns a document's first dependency (else lane 0) is mutated."""

    def on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> Intervention:
        return MutateProducers(
            tuple(
                0 if document.dependency_owner is None else lanes[document.dependency_owner]
                for document, lanes in zip(documents, lane_of_plan, strict=True)
            )
        )


@dataclass(frozen=True)
class MoveOwner:
    """The notes of the first dependency's owner stand at another sender's address.

    It changes places with the next lane that is not the receiver: the receiver finds the same notes
    under the same lag, each from the wrong sender.
    """

    def on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> Intervention:
        return ByDocument(
            tuple(
                ExchangeProducers(*(lanes[lane] for lane in changed_senders(document)))
                for document, lanes in zip(documents, lane_of_plan, strict=True)
            )
        )


def changed_senders(document: HeldOutDocument) -> tuple[int, int]:
    """The owner of the first dependency, and the lane that is neither it nor its receiver."""
    lanes = range(len(document.section_lengths))
    owner = document.dependency_owner or 0
    receiver = document.dependency_receiver
    return owner, next(lane for lane in lanes if lane not in (owner, receiver))


@dataclass(frozen=True)
class TransplantNode:
    """One node becomes a copy of a node of another lane, which keeps its own."""

    def on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> Intervention:
        return ByDocument(
            tuple(
                ReplaceNode(lanes[drawn.lane], drawn.node, lanes[drawn.from_lane], drawn.from_node)
                for drawn, lanes in zip(_drawn(documents), lane_of_plan, strict=True)
            )
        )


@dataclass(frozen=True)
class DropDrawnNode:
    """The node that a transplant would replace stops existing."""

    def on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> Intervention:
        return ByDocument(
            tuple(
                DropNode(lanes[drawn.lane], drawn.node)
                for drawn, lanes in zip(_drawn(documents), lane_of_plan, strict=True)
            )
        )


def _drawn(documents: Sequence[HeldOutDocument]) -> list[Transplant]:
    found = [document.transplant for document in documents if document.transplant is not None]
    assert len(found) == len(documents), "the condition chooses its documents"
    return found
