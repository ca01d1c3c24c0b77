"""What lanes wrote under a condition, with the addresses of their plans: lines that are stored.

Paper: §7.1, §7.2.
"""

from pdt.contract import Contract, Id, Index

EOS = "eos"


class WrittenLane(Contract):
    """What one physical lane wrote."""

    text: str
    tokens: tuple[int, ...]
    finish: str
    """eos, length, stop or interrupted."""
    block_ends: tuple[Index, ...] = ()
    """Characters of the text at the end of each whole block."""

    @property
    def prose_tokens(self) -> int:
        """Tokens without the end of text."""
        return len(self.tokens) - (self.finish == EOS)


class Written(Contract):
    """A line of generations.jsonl: one document under one condition."""

    condition: Id
    record_id: Id
    lane_of_plan: tuple[Index, ...]
    """The physical lane at which each teacher lane's outline stood when it was written."""
    unmoved_lane_of_plan: tuple[Index, ...]
    """The same before the condition moved any."""
    lane_at_position: tuple[Index, ...]
    lanes: tuple[WrittenLane, ...]
    forced: dict[str, str] | None = None
    """By coined choice, the word that its owner was made to write; None when nobody was."""
