"""What leaves and what comes back, whatever the format.

Paper: §7.2.
"""

from pdt.audit.queue import Paragraphs
from pdt.contract import Contract, Line


class Task(Contract):
    """One item as another tool gets it: the opaque id, the claim, the text. Nothing else."""

    id: Line
    claim: Line
    paragraphs: Paragraphs

    @property
    def sentences(self) -> list[str]:
        return [sentence for paragraph in self.paragraphs for sentence in paragraph]


class Answered(Contract):
    """One vote as it comes back."""

    id: Line
    answer: Line
    sentence: int | None = None
    """Counted from 1, as people see it."""
    remark: str = ""
    seconds: float | None = None
