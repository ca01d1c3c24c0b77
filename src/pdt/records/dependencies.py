"""Dependency tokens, and the note block that each can read from.

An edge says: this token of the receiver overlaps a required quote, and the note of that block of
the owner, in which the owner's quote is complete, is read by the state that chooses the token. That
is the state of the token before it, so that a block's first token is chosen one barrier early.

Paper: §4.2, §4.3, §5.2, §7.3.
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
    """Block of the first receiver token."""
    lags: tuple[int, ...]
    """Of each receiver token: blocks from the owner's note to the state that chooses it."""

    @property
    def lag(self) -> int:
        """Blocks from the owner's note to the state that chooses the first receiver token."""
        return self.lags[0]

    def early(self, delay: int) -> range:
        """The receiver tokens that are chosen before the owner's note can be read."""
        return self.receiver_tokens[: sum(lag < delay for lag in self.lags)]

    def late(self, delay: int, window: int) -> range:
        """The receiver tokens that are chosen after it has left the window."""
        return self.receiver_tokens[sum(lag < delay + window for lag in self.lags) :]


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
    owner_block = tokens_K[owner.lane].block_of(owner_tokens[-1])
    return PlacedDependency(
        dependency,
        owner_block=owner_block,
        receiver_tokens=receiver_tokens,
        coined_tokens=_coined_tokens(dependency, lane),
        first_block=lane.block_of(receiver_tokens[0]),
        lags=tuple(lane.choosing_block(token) - owner_block for token in receiver_tokens),
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
