"""Display text in which every character knows the DOM node it came from.

White space runs become one space, invisible and control characters go, and where something was left
out its leavings go too: an empty pair of parentheses, a separator with nothing before it.

Paper: §4.1.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

_SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
)
_IRREGULAR = re.compile(
    f"(?P<unseen>[{_UNSEEN}]+)|(?P<space>[{_SPACES}]{{2,}}|[{_SPACES.replace(' ', '')}])"
)
_GAP = "\x00"
"""Stands where something was left out, while a line is built; no text holds it."""
_HOLE = re.compile("[\x00 ,;:]+")
_PASSES = 50
"""Parentheses within parentheses that may come out empty, one a pass."""

Character = tuple[str, int, int]
"""A character, the piece it came with, and its offset in that piece's node."""


class Run(NamedTuple):
    """`text[start:end]` is what stands at `offset` of a text node, white space aside."""

    start: int
    end: int
    node: str
    """Nearest element id and the child places from it: `mwBA/0/1`."""
    offset: int


@dataclass(frozen=True)
class TracedText:
    """A line of text and the runs that cover it, in order and without holes."""

    text: str
    runs: tuple[Run, ...]


class TracedBuilder:
    """Collects pieces of text nodes, in reading order."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, str, int]] = []
        """Text, node, offset in the node; a gap is an empty text."""
        self._length = 0

    @property
    def length(self) -> int:
        """About how many characters stand so far: a mark's place, for a reviewer."""
        return self._length

    def add(self, text: str, node: str) -> None:
        """All of one text node."""
        self._length += len(text)
        done = 0
        for match in _IRREGULAR.finditer(text):
            if match.start() > done:
                self._pieces.append((text[done : match.start()], node, done))
            if match["space"] is not None:
                self._pieces.append((" ", node, match.start()))
            done = match.end()
        if done < len(text):
            self._pieces.append((text[done:], node, done))

    def space(self, node: str) -> None:
        """A line break: it stands between words and is no character of a node."""
        self._pieces.append((" ", node, 0))

    def gap(self) -> None:
        """Something was left out here."""
        self._pieces.append(("", "", 0))

    def build(self) -> TracedText:
        if any(not node for _, node, _ in self._pieces):
            return self._line(self._characters())
        texts: list[str] = []
        runs: list[Run] = []
        length, after_space = 0, True
        for text, node, offset in self._pieces:
            if after_space and text[0] == " ":
                text, offset = text[1:], offset + 1
            if not text:
                continue
            texts.append(text)
            runs.append(Run(length, length + len(text), node, offset))
            length, after_space = length + len(text), text[-1] == " "
        if after_space and runs:  # the line ends in one space; drop it
            last = runs.pop()
            if last.end - last.start > 1:
                runs.append(last._replace(end=last.end - 1))
        return TracedText("".join(texts).rstrip(" "), tuple(runs))

    def _characters(self) -> list[Character]:
        """Every character that stays, with the leavings at every gap removed."""
        characters: list[Character] = []
        for number, (text, node, offset) in enumerate(self._pieces):
            if not node:
                characters.append((_GAP, number, 0))
            characters += [(c, number, offset + place) for place, c in enumerate(text)]
        for _ in range(_PASSES):
            if not _tidy(characters):
                break
        return _collapsed(characters)

    def text(self) -> str:
        """The line alone, for text that nobody traces."""
        if any(not node for _, node, _ in self._pieces):
            return "".join(character for character, _, _ in self._characters())
        return self.build().text

    def _line(self, characters: list[Character]) -> TracedText:
        runs: list[Run] = []
        start, piece, first = 0, -1, 0
        for place, (_, number, offset) in enumerate(characters):
            if number != piece or offset - first != place - start:
                if piece >= 0:
                    runs.append(Run(start, place, self._pieces[piece][1], first))
                start, piece, first = place, number, offset
        if piece >= 0:
            runs.append(Run(start, len(characters), self._pieces[piece][1], first))
        return TracedText("".join(character for character, _, _ in characters), tuple(runs))


def _tidy(characters: list[Character]) -> bool:
    """Remove what only made sense with the words that were left out; was there anything?

    A hole is a longest run of gaps, spaces and separators with a gap in it. Parentheses with only a
    hole between them become a gap themselves, which the next pass sees with what is around it.
    """
    line = "".join(character for character, _, _ in characters)
    deleted: set[int] = set()
    for hole in _HOLE.finditer(line):
        start, end = hole.span()
        if _GAP not in hole[0] or deleted & {start - 1}:
            continue
        before, after = line[start - 1 : start], line[end : end + 1]
        if hole[0][0] == ":" and line.endswith("IPA", 0, start):  # a label of what was left out
            deleted.update(range(start - len("IPA"), start + 1))
        elif before == "(" and after == ")":
            deleted |= {start - 1, end, *range(start, end)} - {start + hole[0].index(_GAP)}
        elif before in ("", "(") or after in ("", ")", "."):
            deleted.update(range(start, end))
        else:
            deleted |= set(range(start, end)) - _kept(hole[0], start)
    for place in sorted(deleted, reverse=True):
        del characters[place]
    return bool(deleted)


def _kept(hole: str, start: int) -> set[int]:
    """Of a hole between words: its last separator, and the space after it."""
    separator = max((place for place, c in enumerate(hole) if c in ",;:"), default=-1)
    space = hole.rfind(" ", separator + 1)
    return {start + place for place in (separator, space) if place >= 0}


def _collapsed(characters: list[Character]) -> list[Character]:
    kept: list[Character] = []
    for entry in characters:
        if entry[0] == _GAP or (entry[0] == " " and (not kept or kept[-1][0] == " ")):
            continue
        kept.append(entry)
    while kept and kept[-1][0] == " ":
        kept.pop()
    return kept
