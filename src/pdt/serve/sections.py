"""Sections as one text: in reading order, each piece given out as soon as it is its turn.

Joined, the pieces are the document's text, which strips every section and parts them by an empty
line; so white space is held back until it is known to stand inside a section.

Paper: §2.1.
"""

from collections.abc import Iterator, Sequence

BREAK = "\n\n"


class OneSection:
    """One lane's text without white space at its ends."""

    def __init__(self) -> None:
        self._begun = False
        self._held = ""

    def push(self, piece: str) -> str:
        text = self._held + piece
        if not self._begun:
            text = text.lstrip()
        kept = text.rstrip()
        self._held = text[len(kept) :]
        self._begun = self._begun or bool(kept)
        return kept


class ReadingOrder:
    """The sections of one document as one stream: the first live, the others when it has ended."""

    def __init__(self, lane_at_position: Sequence[int]) -> None:
        self._order = list(lane_at_position)
        self._sections = {lane: OneSection() for lane in self._order}
        self._pending = dict.fromkeys(self._order, "")
        self._ended: set[int] = set()
        self._at = 0

    def push(self, lane: int, piece: str) -> str:
        """The text that can be given out now."""
        self._pending[lane] += self._sections[lane].push(piece)
        return "".join(self._flow())

    def finish(self, lane: int) -> str:
        self._ended.add(lane)
        return "".join(self._flow())

    def _flow(self) -> Iterator[str]:
        while self._at < len(self._order):
            lane = self._order[self._at]
            text, self._pending[lane] = self._pending[lane], ""
            yield text
            if lane not in self._ended:
                return
            self._at += 1
            if self._at < len(self._order):
                yield BREAK
