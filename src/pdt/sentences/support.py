"""Which sentence of the source bears out a written one, if any does.

A written sentence is borne out when nearly all its content words, and every name and number in it,
are those of one source sentence or names of what that sentence's paragraph is about. Meaning is not
read: words that stand in the source in another relation pass. It is a screen, and an exact one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pdt.sentences.asides import without_asides
from pdt.sentences.split import sentence_spans, split_sentences
from pdt.sentences.words import Said, said

LEAST_OF_ITS_WORDS = 0.8
"""The share of a written sentence's content words that one source sentence must have."""


@dataclass(frozen=True)
class SourceSentence:
    """One sentence of a source and where it stands."""

    paragraph: int
    start: int
    end: int
    """Its characters in the paragraph."""
    text: str
    names: frozenset[str]
    """Words of the heading above it and of what its paragraph begins with."""


@dataclass(frozen=True)
class WrittenSentence:
    """One written sentence and the source sentence that bears it out."""

    text: str
    source: int | None
    """Its place among the source sentences; None when nothing bears it out."""
    share: float
    """The share of its content words that the nearest source sentence has."""


def paragraphs_of(text: str) -> list[str]:
    """Paragraphs of a plain or Markdown text; a heading is one of its own."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def source_sentences(text: str) -> list[SourceSentence]:
    """Every sentence of a source in plain text or Markdown; headings only name what follows."""
    found: list[SourceSentence] = []
    heading = ""
    for number, paragraph in enumerate(paragraphs_of(text)):
        if paragraph.startswith("#"):
            heading = paragraph.lstrip("# ")
            continue
        spans = sentence_spans(paragraph)
        opening = " ".join(paragraph.split()[:8])
        names = said(f"About {heading}").words | said(f"About {opening}").values
        for start, end in spans:
            found.append(SourceSentence(number, start, end, paragraph[start:end], frozenset(names)))
    return found


def written_sentences(text: str) -> list[str]:
    """The sentences of a section, paragraph by paragraph."""
    return [s for paragraph in paragraphs_of(text) for s in split_sentences(paragraph)]


def borne_out(section: str, source: Sequence[SourceSentence]) -> list[WrittenSentence]:
    """Every sentence of a section with the source sentence it stands on."""
    return [_stands_on(sentence, source) for sentence in written_sentences(section)]


def _stands_on(sentence: str, source: Sequence[SourceSentence]) -> WrittenSentence:
    mine = said(without_asides(sentence))
    best, place = 0.0, None
    for number, other in enumerate(source):
        words = said(other.text, whole=True).words | other.names
        share = share_of(mine, words)
        if share > best:
            best, place = share, number
    if place is None:
        return WrittenSentence(sentence, None, 0.0)
    theirs = said(source[place].text, whole=True).words | source[place].names
    kept = best >= LEAST_OF_ITS_WORDS and mine.values <= theirs
    return WrittenSentence(sentence, place if kept else None, best)


def share_of(sentence: Said, words: frozenset[str]) -> float:
    """The share of a sentence's content words that are among `words`."""
    return len(sentence.words & words) / len(sentence.words) if sentence.words else 0.0


@dataclass(frozen=True)
class Support:
    """How far a whole document stands on its source."""

    sentences: int
    borne_out: int
    repeated: int
    """Sentences whose words another one before them has said, in any section."""

    @property
    def share(self) -> float:
        return self.borne_out / self.sentences if self.sentences else 0.0

    @property
    def repetition(self) -> float:
        return self.repeated / self.sentences if self.sentences else 0.0


def words_told(sentence: str) -> frozenset[str]:
    """What two sentences must share, asides apart, for one of them to be said before."""
    return said(without_asides(sentence)).words


def support_of(sections: Sequence[str], source: str) -> Support:
    """Counted over all sections together."""
    theirs = source_sentences(source)
    written = [sentence for section in sections for sentence in borne_out(section, theirs)]
    told = Counter(words_told(sentence.text) for sentence in written)
    return Support(
        sentences=len(written),
        borne_out=sum(sentence.source is not None for sentence in written),
        repeated=sum(count - 1 for count in told.values()),
    )
