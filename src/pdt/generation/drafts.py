"""Drafts from the source: what a lane has just written often stands in its prompt too.

A lane's next tokens are looked up in its prompt and its own text, and taken in with the token that
is due; a wrong one is taken back. Each is still chosen from the same logits and the same random
number, so the text does not depend on what was drafted.

Not in the paper, whose rounds take one token a lane (§3.6).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pdt.generation.row_costs import RowCosts

LONGEST, SHORTEST = 4, 1
"""Tokens that must agree before a passage is taken for the one being copied; longer goes first."""
DECIDED = LONGEST + 1
"""In place of a number of agreeing tokens: the next words are given, and will be written."""
REMEMBERED = 32
"""Tried tokens after which older ones count half."""
FORGOTTEN = 0.97
"""What is left of an estimate each time that it keeps from drafting, so that it is tried again."""


@dataclass(frozen=True)
class Draft:
    """Tokens that may come next."""

    matched: int
    """How many tokens before them agreed; 0 where nothing was found."""
    tokens: tuple[int, ...]


NOTHING = Draft(0, ())


class Lookup:
    """A lane's prompt and own text, by their runs of a few tokens. It sees nothing of siblings."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        """Where the text goes on after a run that has been seen: its latest place."""
        for token in prompt:
            self.push(token)

    def push(self, token: int) -> None:
        """One more token of the text."""
        at = len(self._tokens)
        # A run is entered with the token after it, so that the end of the text never finds itself.
        for size in range(SHORTEST, min(LONGEST, at) + 1):
            self._after[tuple(self._tokens[at - size :])] = at
        self._tokens.append(token)

    def draft(self, most: int) -> Draft:
        """What came next where this was last written; nothing where it never was."""
        for size in range(min(LONGEST, len(self._tokens)), SHORTEST - 1, -1):
            at = self._after.get(tuple(self._tokens[-size:]))
            if at is not None:
                return Draft(size, tuple(self._tokens[at : at + most]))
        return NOTHING


@dataclass
class _Tally:
    """A belief about one kind of match, which begins at even chances."""

    accepted: float = 1.0
    tried: float = 2.0

    def add(self, accepted: int, tried: int) -> None:
        if self.tried > REMEMBERED:
            self.accepted, self.tried = self.accepted / 2, self.tried / 2
        self.accepted += accepted
        self.tried += tried

    def forget(self) -> None:
        self.accepted = 1.0 + (self.accepted - 1.0) * FORGOTTEN
        self.tried = 2.0 + (self.tried - 2.0) * FORGOTTEN


@dataclass
class Drafting:
    """How many tokens are worth drafting, by what was accepted before and by what rows cost here.

    A round saved for a lane saves its share of a round. The n-th drafted token is right with chance
    p^n and costs a row: it is drafted while p^n is more than that row's part of such a share.
    """

    most: int
    costs: RowCosts
    _tallies: dict[int, _Tally] = field(default_factory=dict)
    """By how many tokens agreed."""

    def length(self, matched: int, rows: int) -> int:
        """Tokens to draft after such a match, where a plain round has so many rows."""
        tally = self._tallies.setdefault(matched, _Tally())
        chance, cost = tally.accepted / tally.tried, self.costs.share(rows)
        length, worth = 0, chance
        while length < self.most and worth > cost:
            length, worth = length + 1, worth * chance
        if length == 0:
            tally.forget()
        return length

    def learn(self, matched: int, accepted: int, tried: int) -> None:
        self._tallies.setdefault(matched, _Tally()).add(accepted, tried)
