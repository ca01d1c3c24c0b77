"""Edits that depend on the document: the same condition is another intervention in each.

Paper: §7.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.generation.interventions import Intervention, MutateProducers


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
