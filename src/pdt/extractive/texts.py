"""A text as this corpus reads it: a title, and paragraphs of plain sentences under headings."""

import re
import unicodedata

from pdt.contract import Contract, Id, Line
from pdt.sentences.split import split_sentences

LONGEST_TITLE = 6
"""Words of a title that people would write into a sentence."""


class TextSection(Contract):
    """Paragraphs under one heading; the first section of a text may have none."""

    heading: Line | None
    """The heading above them."""
    paragraphs: tuple[Line, ...]
    """Each is one line of plain sentences."""


class Text(Contract):
    """One cleaned text of a data file, whole."""

    id: Id
    """The file and a digest of the text."""
    title: Line
    """Without what stands behind it in parentheses."""
    family: Id
    """What it shares with its relatives: they fall into one split."""
    sections: tuple[TextSection, ...]
    """In reading order."""

    @property
    def words(self) -> int:
        return sum(len(p.split()) for section in self.sections for p in section.paragraphs)


def plain_title(title: str) -> str:
    """`Ed Wood (film)` is called `Ed Wood`."""
    return re.sub(r"\s*\([^)]*\)\s*$", "", " ".join(title.split()))


def is_plain_title(title: str) -> bool:
    """Short, spelled in ordinary letters, and no list."""
    return (
        0 < len(title.split()) <= LONGEST_TITLE
        and re.fullmatch(r"[\w .'&,-]+", title) is not None
        and _is_latin(title)
        and not re.match(r"(?i)(list|lists|outline|index|timeline|deaths) (of|in) ", title)
    )


def family_of(title: str) -> str:
    """Texts of one name are relatives: `Ed Wood`, `Ed Wood (film)`, `ED WOOD`."""
    name = unicodedata.normalize("NFKD", plain_title(title)).casefold()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:100] or "untitled"


_STRANGE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029<>{}|\[\]\\^~=*_#@\u200b-\u200f\ufeff\ufffd]"
)


def clean_paragraph(text: str) -> str | None:
    """The paragraph with even spaces, or None where it is more than plain sentences."""
    text = re.sub(r"\(\s*[;,]?\s*\)", "", " ".join(text.split()))
    text = re.sub(r"\(\s*[;,:]\s*", "(", text)
    text = re.sub(r"\s+([,.;:)])", r"\1", " ".join(text.split()))
    whole = (
        text
        and text[-1] in ".!?\"'"
        and not _STRANGE.search(text)
        and "http" not in text
        and "..." not in text
        and text.count("(") == text.count(")")
        and text.count('"') % 2 == 0
        and _is_latin(text)
    )
    return text if whole else None


def same_sentences(paragraph: str, sentences: list[str]) -> bool:
    """Does our splitter find the sentences that the data file gives?"""
    return split_sentences(paragraph) == [" ".join(s.split()) for s in sentences]


def _is_latin(text: str) -> bool:
    return all(
        ord(c) < 0x250 or c in "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u20ac" for c in text
    )
