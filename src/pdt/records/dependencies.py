"""Dependency tokens, and the note block that each can read from.

An edge says: this token of the receiver overlaps a required quote, and the note of that block of
the owner, in which the owner's quote is complete, is readable there.

Paper: §4.2, §4.3, §7.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pdt.records.align import LaneTokens
from pdt.teacher.answer import Dependency


@dataclass(frozen=True)
class PlacedDependency:
    """A dependency in blocks and tokens."""

    dependency: Dependency
    owner_block: int
    """Block in which the owner quote is complete."""
    receiver_tokens: range
    """Every token that overlaps the receiver quote."""
    coined_tokens: frozenset[int]
    """Those of them that overlap the coined text."""
    first_block: int
    last_block: int
    """Blocks of the first and last receiver token."""

    @property
    def lag(self) -> int:
        """Blocks from the owner's note to the first receiver token."""
        return self.first_block - self.owner_block


def place_dependency(
    dependency: Dependency, tokens_K: Sequence[LaneTokens]
) -> PlacedDependency | None:
    """The dependency on tokens, or None when a quote overlaps no token."""
    owner, receiver = dependency.owner, dependency.receiver
    owner_tokens = tokens_K[owner.lane].tokens_of_quote(owner.quote)
    lane = tokens_K[receiver.lane]
    receiver_tokens = lane.tokens_of_quote(receiver.quote)
    if not owner_tokens or not receiver_tokens:
        return None
    return PlacedDependency(
        dependency,
        owner_block=tokens_K[owner.lane].block_of(owner_tokens[-1]),
        receiver_tokens=receiver_tokens,
        coined_tokens=_coined_tokens(dependency, lane),
        first_block=lane.block_of(receiver_tokens[0]),
        last_block=lane.block_of(receiver_tokens[-1]),
    )


def _coined_tokens(dependency: Dependency, lane: LaneTokens) -> frozenset[int]:
    if dependency.coined is None:
        return frozenset()
    quote, text = dependency.receiver.quote, dependency.coined.text
    tokens: set[int] = set()
    at = quote.text.find(text)
    while at >= 0:
        tokens.update(lane.tokens_of(quote.start + at, quote.start + at + len(text)))
        at = quote.text.find(text, at + 1)
    return frozenset(tokens)
