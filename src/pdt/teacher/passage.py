"""Finding a passage in its text, as a person would: the same words, whatever the dashes.

What is returned is always the text's own characters. Paper: §4.2 (exact quotes and offsets).
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from pdt.sources.quote import Quote, quote_at

SPELLINGS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    "\u2026": "...",
    "\u00ad": "",
}
"""Characters that models replace while copying."""


def find_passage(text: str, passage: str, *, near: Sequence[tuple[int, int]] = ()) -> Quote | None:
    """Where `text` reads `passage`: inside one of the spans `near` if it can be, else first."""
    passage = passage.strip()
    if not passage:
        return None
    places = [(start, start + len(passage)) for start in _starts(text, passage)]
    if not places:
        plain, index = _plain(text)
        wanted, _ = _plain(passage)
        places = [
            (index[start], index[start + len(wanted) - 1] + 1)
            for start in _starts(plain, wanted)
            if wanted
        ]
    inside = [
        (start, end)
        for start, end in places
        if any(low <= start and end <= high for low, high in near)
    ]
    for start, end in (*inside, *places):
        return quote_at(text, start, end)
    return None


def _starts(text: str, passage: str) -> Iterator[int]:
    start = text.find(passage)
    while start >= 0:
        yield start
        start = text.find(passage, start + 1)


def _plain(text: str) -> tuple[str, list[int]]:
    """Text in one spelling and, for each of its characters, the place it came from."""
    out: list[str] = []
    index: list[int] = []
    for place, character in enumerate(text):
        plain = " " if character.isspace() else SPELLINGS.get(character, character)
        if plain == " " and out and out[-1] == " ":
            continue
        out.extend(plain)
        index.extend([place] * len(plain))
    return "".join(out), index


def longest_part(text: str, passage: str) -> str:
    """The longest run of words that both share, for a message that helps to repair."""
    match = SequenceMatcher(None, text, passage, autojunk=False).find_longest_match()
    return text[match.a : match.a + match.size]
