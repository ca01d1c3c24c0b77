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

    def _characters(self) -> list[tuple[str, int, int]]:
        """Character, piece and offset in the node, with the leavings at every gap removed."""
        characters: list[tuple[str, int, int]] = []
        gaps: list[int] = []
        for number, (text, node, offset) in enumerate(self._pieces):
            if not node:
                gaps.append(len(characters))
            for place, character in enumerate(text):
                if character == " " and (not characters or characters[-1][0] == " "):
                    continue
                characters.append((character, number, offset + place))
        for gap in reversed(gaps):
            _tidy(characters, gap)
        return _collapsed(characters)

    def text(self) -> str:
        """The line alone, for text that nobody traces."""
        if any(not node for _, node, _ in self._pieces):
            return "".join(character for character, _, _ in self._characters())
        return self.build().text

    def _line(self, characters: list[tuple[str, int, int]]) -> TracedText:
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


def _tidy(characters: list[tuple[str, int, int]], gap: int) -> None:
    """Remove what only made sense with the words that were left out at `gap`."""
    left = gap
    while left and characters[left - 1][0] == " ":
        left -= 1
    right = gap
    while right < len(characters) and characters[right][0] == " ":
        right += 1
    if left and characters[left - 1][0] == "(":
        while right < len(characters) and characters[right][0] in " ,;:":
            right += 1
        if right < len(characters) and characters[right][0] == ")":
            left, right = left - 1, right + 1
            while left and characters[left - 1][0] == " ":
                left -= 1
        del characters[left:right]
    elif right < len(characters) and characters[right][0] in ",.;:)":
        if characters[right][0] == ")":
            while left and characters[left - 1][0] in " ,;:":
                left -= 1
        del characters[left:right]


def _collapsed(characters: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    kept: list[tuple[str, int, int]] = []
    for entry in characters:
        if entry[0] == " " and (not kept or kept[-1][0] == " "):
            continue
        kept.append(entry)
    while kept and kept[-1][0] == " ":
        kept.pop()
    return kept
