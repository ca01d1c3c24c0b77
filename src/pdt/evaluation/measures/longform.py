"""Long-form lanes: long enough, in paragraphs, and not chopped into short sentences.

Paper: §7.2.
"""

import re

from pdt.config import PdtConfig
from pdt.contract import Contract, Index

SHORT_WORDS = 8
"""A sentence of fewer words is short."""
MOST_SHORT = 0.10
"""Of a lane's sentences."""


class LongformLimits(Contract):
    """What a valid lane has at least: the paper's 700 and 4, or the corpus's own minimum."""

    tokens: Index
    paragraphs: Index

    @classmethod
    def of(cls, config: PdtConfig) -> "LongformLimits":
        """The least that the corpus's own sections have; for the canonical one that is §7.2."""
        limits = config.records.limits
        return cls(tokens=limits.section_tokens.min, paragraphs=limits.section_paragraphs.min)


def paragraphs_of(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text) if part.strip()]


def sentences_of(text: str) -> list[str]:
    """Sentences end with . ! or ? before a space, or with their paragraph."""
    return [
        sentence
        for paragraph in paragraphs_of(text)
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split()))
        if sentence
    ]


def one_spaced(text: str) -> str:
    """The text with every run of space as one: where places in it are counted."""
    return " ".join(text.split())


def sentence_starts(text: str) -> list[int]:
    """Where each sentence begins, counted in the one-spaced text; 0 at least."""
    starts, at = [0], 0
    for sentence in sentences_of(text):
        starts.append(at)
        at += len(sentence) + 1
    return starts


def short_sentence_share(text: str) -> float:
    """The share of sentences under eight words; text without a sentence is all short."""
    sentences = sentences_of(text)
    if not sentences:
        return 1.0
    return sum(len(s.split()) < SHORT_WORDS for s in sentences) / len(sentences)


def is_longform(text: str, tokens: int, limits: LongformLimits) -> bool:
    """`tokens` are the lane's own, its end-of-text not counted."""
    return (
        tokens >= limits.tokens
        and len(paragraphs_of(text)) >= limits.paragraphs
        and short_sentence_share(text) <= MOST_SHORT
    )
