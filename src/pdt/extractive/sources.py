"""Texts into sources: dossiers of several notes, loose paragraphs, whole articles.

A text is taken whole or not at all. Splits are drawn by family, before anything is taught, and a
dossier takes all its notes from one split.

Paper: §4.1, Table 1 (splits by family).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pdt.chronicle.dice import dice, share
from pdt.config import ContractLimits, SplitShares
from pdt.config.sources import DossierConfig
from pdt.extractive.alter import has_value
from pdt.extractive.claims import read_claims
from pdt.extractive.texts import Text
from pdt.provenance import sha256_json
from pdt.sentences.split import split_sentences
from pdt.sources.article import Article, ArticleSection, Paragraph
from pdt.teacher.interface import TeachingSource
from pdt.terms import Split
from pdt.tokenizer import StudentTokenizer

TITLES = (
    "Notes", "Dossier", "Short notes", "A small collection", "Reading notes", "Background",
    "Entries", "From the archive", "Selected entries", "Handout", "Extracts", "Miscellany",
    "What we have",
)  # fmt: skip
"""A dossier's title says nothing of what is in it."""
TRIES = 400


def split_of(family: str, shares: SplitShares) -> Split:
    """Where a family falls, for ever."""
    drawn = share("digest family", shares.seed, family)
    if drawn < shares.train:
        return Split.TRAIN
    return Split.VALIDATION if drawn < shares.train + shares.validation else Split.TEST


def without_doubles(texts: Sequence[Text]) -> list[Text]:
    """One text for each title and for each first sentence; the first one that has it."""
    seen: set[str] = set()
    kept = []
    for text in texts:
        first = split_sentences(text.sections[0].paragraphs[0])[0].casefold()
        marks = {f"title {text.title.casefold()}", f"first {first}"}
        if len(text.sections[0].paragraphs) > 1:
            marks.discard(f"title {text.title.casefold()}")  # several runs of one article
        if not marks & seen:
            kept.append(text)
        seen |= marks
    return kept


@dataclass(frozen=True)
class Library:
    """The texts of one split, and how sources are put together from them."""

    texts: tuple[Text, ...]
    split: Split
    config: DossierConfig
    limits: ContractLimits
    tokenizer: StudentTokenizer

    @cached_property
    def notes(self) -> tuple[Text, ...]:
        """Short texts of one paragraph."""
        return tuple(
            t for t in self.texts if self.config.note_words.holds(t.words) and _is_short(t)
        )

    @cached_property
    def long_texts(self) -> tuple[Text, ...]:
        """Texts that are a source by themselves."""
        return tuple(
            t for t in self.texts if not _is_short(t) or t.words >= self.config.alone_words
        )

    def source(self, seed: int, index: int) -> TeachingSource:
        """Source `index` of this split, the same wherever it is made."""
        stream = dice("digest source", seed, self.split, index)
        kind = stream.choices(list(self.config.kinds), list(self.config.kinds.values()))[0]
        for _ in range(TRIES):
            drawn = self._draw(stream, kind)
            if drawn is None:
                continue
            article, family = drawn
            tokens = len(self.tokenizer.encode(article.text).ids)
            facts = sum(has_value(claim.statement) for claim in read_claims(article))
            if self.limits.source_tokens.holds(tokens) and facts >= self.limits.facts.min:
                return TeachingSource(
                    record_id=f"digest-{self.split}-{seed}-{index:07d}",
                    split=self.split,
                    family_key=f"text:{family}",
                    category=kind,
                    article=article,
                )
            kind = stream.choices(list(self.config.kinds), list(self.config.kinds.values()))[0]
        raise LookupError(f"no source {index} of {self.split} in {TRIES} tries")

    def _draw(self, stream: random.Random, kind: str) -> tuple[Article, str] | None:
        if kind == "article":
            if not self.long_texts:
                return None
            text = stream.choice(self.long_texts)
            return _article(text), text.family
        notes = self._choose_notes(stream)
        if notes is None:
            return None
        return _dossier(stream, notes, headed=kind == "dossier"), notes[0].family

    def _choose_notes(self, stream: random.Random) -> list[Text] | None:
        wanted = stream.randint(self.config.notes.min, self.config.notes.max)
        notes: list[Text] = []
        for _ in range(20 * wanted):
            note = stream.choice(self.notes)
            if all(note.family != other.family for other in notes) and self._is_told(note):
                notes.append(note)
            if len(notes) == wanted:
                return notes
        return None

    def _is_told(self, note: Text) -> bool:
        return told_share(note) >= self.config.told_share


@lru_cache(maxsize=1 << 17)
def told_share(note: Text) -> float:
    """The share of a note's sentences that can be told alone, beside other notes."""
    sentences = len(split_sentences(note.sections[0].paragraphs[0]))
    other = ArticleSection(
        path=("Other",), paragraphs=(Paragraph(id="p0", text="Other One is a b."),)
    )
    beside = Article(
        bundle_id="0" * 64,
        title="Notes",
        sections=(ArticleSection(path=("Note",), paragraphs=_paragraphs(note)), other),
    )
    return sum(claim.group == 0 for claim in read_claims(beside)) / sentences


def _is_short(text: Text) -> bool:
    return len(text.sections) == 1 and len(text.sections[0].paragraphs) == 1


def _paragraphs(text: Text, number: int = 1) -> tuple[Paragraph, ...]:
    paragraphs = [p for section in text.sections for p in section.paragraphs]
    return tuple(
        Paragraph(id=f"p{n}", text=paragraph)
        for n, paragraph in enumerate(paragraphs, start=number)
    )


def _article(text: Text) -> Article:
    sections, number = [], 1
    for section in text.sections:
        paragraphs = tuple(
            Paragraph(id=f"p{n}", text=paragraph)
            for n, paragraph in enumerate(section.paragraphs, start=number)
        )
        number += len(paragraphs)
        path = (section.heading,) if section.heading else ()
        sections.append(ArticleSection(path=path, paragraphs=paragraphs))
    return _whole(text.title, tuple(sections), [text])


def _dossier(stream: random.Random, notes: Sequence[Text], *, headed: bool) -> Article:
    title = stream.choice(TITLES)
    paragraphs = [
        Paragraph(id=f"p{n}", text=note.sections[0].paragraphs[0])
        for n, note in enumerate(notes, start=1)
    ]
    if headed:
        sections = tuple(
            ArticleSection(path=(note.title,), paragraphs=(paragraph,))
            for note, paragraph in zip(notes, paragraphs, strict=True)
        )
    else:
        sections = (ArticleSection(path=(), paragraphs=tuple(paragraphs)),)
    return _whole(title, sections, notes)


def _whole(title: str, sections: tuple[ArticleSection, ...], texts: Sequence[Text]) -> Article:
    """The article, whose bundle id names its texts and its own words."""
    body = [section.model_dump(mode="json") for section in sections]
    address = sha256_json({"texts": [text.id for text in texts], "title": title, "sections": body})
    return Article(bundle_id=address, title=title, sections=sections)
