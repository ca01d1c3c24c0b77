"""Where one lane stands between two rounds: what its caches hold, and what has been scored.

Inside a block lanes need not keep step: one whose draft was right is ahead of its siblings. At the
block's end it waits; no token past a barrier is ever taken in before the barrier.

Paper: §3.6, Fig. 3.
"""

from collections.abc import Iterator

from torch import Tensor

from pdt.generation.drafts import NOTHING, Draft, Drafting
from pdt.generation.lane import LaneWriter


class Standing:
    """A lane's writer, and between its text and its caches at most one token."""

    def __init__(self, writer: LaneWriter, h_D: Tensor, logits_V: Tensor) -> None:
        self.writer = writer
        self.taken = 0
        """Tokens of the text that the caches hold."""
        self.h_D = h_D
        """State of the last of them; of the prompt's last token before any."""
        self.drafted = 0
        self.accepted = 0
        self._states_TD = h_D[None]
        self._scored_TV: Tensor | None = logits_V[None]
        """What comes after each token of the last run, until it has been looked at."""
        self._at = 0
        self._draft = NOTHING

    def choose(self, end: int, drafting: Drafting | None) -> Iterator[tuple[int, str]]:
        """Tokens and their texts, as far as drafts were right and never past the block's end."""
        writer, draft = self.writer, self._draft.tokens
        missed = False
        while self._scored_TV is not None and writer.reason is None and self.taken < end:
            text = writer.take(self._scored_TV[self._at])
            token = writer.tokens[-1]
            yield token, text
            expected = draft[self._at] if self._at < len(draft) else None
            missed = expected is not None and token != expected
            if token != expected or not self._taken_in(end):
                self._scored_TV = None
            else:
                self._at += 1
                self.taken += 1
                self.h_D = self._states_TD[self._at]
        if draft and drafting is not None:
            drafting.learn(self._draft.matched, self._at, self._at + missed)
            self.accepted += self._at
            self._draft = NOTHING

    def next_run(self, end: int, drafting: Drafting | None, rows: int) -> list[int]:
        """The tokens to take in: the one that is due, and then what is drafted."""
        due = self.writer.tokens[self.taken :]
        if not due or not self._taken_in(end):
            return []
        if drafting is not None and self.writer.reason is None:
            room = min(end - len(self.writer.tokens), self.writer.left - 1)
            self._draft = self._drafted(drafting, room, rows)
            self.drafted += len(self._draft.tokens)
        return [*due, *self._draft.tokens]

    def take_in(self, h_TD: Tensor, logits_TV: Tensor) -> None:
        """The run has been taken in; its first token is certain, the others may be taken back."""
        self._states_TD, self._scored_TV, self._at = h_TD, logits_TV, 0
        self.taken += 1
        self.h_D = h_TD[0]

    def waits(self, end: int) -> bool:
        """Nothing of it is to be taken in before the block's end."""
        return self.taken == end or (self.writer.reason is not None and not self._taken_in(end))

    def _taken_in(self, end: int) -> bool:
        """An end is part of no later token's past; it is read where it completes a block's note."""
        return self.writer.reason is None or len(self.writer.tokens) == end

    def _drafted(self, drafting: Drafting, room: int, rows: int) -> Draft:
        found = self.writer.draft(min(room, drafting.most))
        if not found.tokens:
            return NOTHING
        length = drafting.length(found.matched, rows)
        return Draft(found.matched, found.tokens[:length]) if length else NOTHING
