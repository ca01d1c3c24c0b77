"""Sections as connected prose: each owned claim in its own words, close to the source.

No formula opens a section: the first token of a claim is decided by the plan and nothing else.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pdt.extractive.claims import Claim
from pdt.extractive.divide import Lane, listed
from pdt.teacher.answer import PARAGRAPH_BREAK

CONNECTIVES = ("Also,", "In addition,", "Moreover,", "Besides,", "Further,", "Beyond that,")
_STARTS_SMALL = (
    "The ", "A ", "An ", "In ", "On ", "At ", "It ", "He ", "She ", "His ", "Her ", "Its ",
    "During ", "After ", "Before ", "From ", "By ", "With ", "Since ", "As ",
)  # fmt: skip


@dataclass
class Mark:
    """A style word inside a told sentence."""

    style: str
    start: int
    end: int


@dataclass
class Sentence:
    """One claim as a section tells it."""

    claim: int
    """Its place in the inventory."""
    text: str
    marks: list[Mark] = field(default_factory=list)


@dataclass
class ToldSection:
    """One lane's prose, node by node."""

    nodes: list[list[Sentence]]

    @property
    def paragraphs(self) -> list[str]:
        return [" ".join(sentence.text for sentence in node) for node in self.nodes]

    @property
    def text(self) -> str:
        return PARAGRAPH_BREAK.join(self.paragraphs)

    def placed(self) -> list[tuple[int, int, Sentence]]:
        """Every sentence with its node and its first character in the section."""
        found, start = [], 0
        for number, node in enumerate(self.nodes):
            for sentence in node:
                found.append((number, start, sentence))
                start += len(sentence.text) + 1
            start += len(PARAGRAPH_BREAK) - 1
        return found


def tell_lane(
    stream: random.Random,
    lane: Lane,
    claims: Sequence[Claim],
    *,
    pronoun_share: float,
    connective_share: float,
) -> ToldSection:
    """The prose of one lane; a pronoun only right behind a sentence of the same subject."""
    nodes = []
    for number, node in enumerate(lane):
        sentences: list[Sentence] = []
        for place, index in enumerate(node):
            claim = claims[index]
            before = claims[node[place - 1]] if place else None
            text = claim.statement
            if (
                claim.by_pronoun
                and before is not None
                and claim.subject is not None
                and before.group == claim.group
                and before.statement.startswith(claim.subject)
                and stream.random() < pronoun_share
            ):
                text = claim.by_pronoun
            if (number or place) and stream.random() < connective_share:
                text = f"{stream.choice(CONNECTIVES)} {_small(text)}"
            sentences.append(Sentence(index, text))
        nodes.append(sentences)
    return ToldSection(nodes)


def _small(text: str) -> str:
    """A sentence behind a connective: only words that are no name lose their capital."""
    return text[0].lower() + text[1:] if text.startswith(_STARTS_SMALL) else text


def objective_of(node: Sequence[int], claims: Sequence[Claim]) -> str:
    """What a node is about, without the values that it tells."""
    subjects = list(dict.fromkeys(_topic(claims[index]) for index in node))
    return f"Tell of {listed(subjects)}."


def _topic(claim: Claim) -> str:
    if claim.subject:
        return claim.subject
    return f"\u201c{' '.join(claim.statement.split()[:4]).rstrip('.,;:')}\u201d"
