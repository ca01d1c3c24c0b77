"""House style: small choices that stand in no source and that all sections must make alike.

The teacher draws one of 2^h ways, the section that is read first shows it, the others follow. The
choice is a coined one: its bits are known, and only a note can carry it from lane to lane.

Paper: §4.2 (dependencies), §7.3.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdt.extractive.claims import Claim
from pdt.extractive.tell import Mark, ToldSection
from pdt.sentences.asides import ONE_OF_OURS, ONE_OF_THE, TOLD_IN
from pdt.teacher.checks.facts import fold

NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)
VERB = (
    r"(?:is|was|are|were|has|had|became|won|lies|stands|served|played|began|consists|covers|hosts)"
)


@dataclass(frozen=True)
class Style:
    """One group of ways to say a thing."""

    name: str
    cue: str
    """The words that lead to it, the same in every section."""
    after: str
    """What closes the phrase."""
    ways: tuple[str, ...]


WORDS_FOR_THE_SOURCE = (
    "dossier", "file", "brief", "register", "handout", "journal", "bulletin", "almanac", "survey",
    "ledger", "gazette", "memo",
)  # fmt: skip
WORDS_FOR_A_SUBJECT = (
    "entries", "items", "subjects", "topics", "cases", "examples", "matters", "choices",
)  # fmt: skip
SPELLINGS = (("catalogue", "catalog"), ("programme", "program"), ("grey book", "gray book"))


def styles_for(stream: random.Random, groups: int) -> list[Style]:
    """The styles that a document of so many notes may draw from, in drawn order."""
    cue = stream.choice(TOLD_IN)
    found = [
        Style("source_word", cue, "", WORDS_FOR_THE_SOURCE),
        Style("spelling", cue, "", stream.choice(SPELLINGS)),
        Style("subject_word", ONE_OF_OURS, " here", WORDS_FOR_A_SUBJECT),
    ]
    if 3 <= groups < len(NUMBER_WORDS):
        ways = (f"{NUMBER_WORDS[groups]} notes", f"{groups} notes")
        found.append(Style("numerals", ONE_OF_THE, "", ways))
    stream.shuffle(found)
    return found


@dataclass(frozen=True)
class DrawnStyle:
    """What a document's house style is."""

    style: Style
    text: str
    pool: tuple[str, ...]

    @property
    def bits(self) -> int:
        return len(self.pool).bit_length() - 1

    @property
    def phrase(self) -> str:
        return f"{self.style.cue} {self.text}{self.style.after}"


def draw_style(
    stream: random.Random, style: Style, bits: Sequence[int], hidden_from: Mapping[str, str]
) -> DrawnStyle | None:
    """One of 2^h ways, none of which stands in anything that is there before the writing."""
    texts = [fold(text) for text in hidden_from.values()]
    free = [way for way in style.ways if not any(fold(way) in text for text in texts)]
    fitting = [h for h in bits if 2**h <= len(free)]
    if not fitting or any(fold(style.cue) in text for text in texts):
        return None
    pool = stream.sample(free, 2 ** stream.choice(fitting))
    return DrawnStyle(style, stream.choice(pool), tuple(sorted(pool)))


_SUBJECT = re.compile(rf"^(?P<head>[^,.;:]{{3,60}}?) (?P<tail>{VERB} .+)$")


def write_style(
    section: ToldSection, node: int, place: int, drawn: DrawnStyle, claim: Claim
) -> bool:
    """Put the phrase behind the sentence's subject, or before its end; False where neither fits."""
    sentence = section.nodes[node][place]
    if sentence.marks:
        return False
    found = _SUBJECT.match(sentence.text)
    if claim.subject and found and found["head"] == claim.subject:
        before, after = (
            f"{found['head']}, {drawn.style.cue} ",
            f"{drawn.style.after}, {found['tail']}",
        )
    elif sentence.text.endswith(".") and drawn.style.name in ("source_word", "spelling"):
        before, after = f"{sentence.text[:-1]}, {drawn.style.cue} ", f"{drawn.style.after}."
    else:
        return False
    sentence.text = f"{before}{drawn.text}{after}"
    sentence.marks.append(Mark(drawn.style.name, len(before), len(before) + len(drawn.text)))
    return True
