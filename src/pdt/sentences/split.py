"""Where a sentence ends: at its mark, unless the mark belongs to an abbreviation or an initial."""

import re

ABBREVIATIONS = {
    "adm", "al", "apr", "approx", "aug", "ave", "bros", "c", "ca", "capt", "cf", "ch", "co", "col",
    "corp", "dec", "dr", "ed", "eg", "esq", "est", "etc", "feb", "fig", "fl", "fr", "gen", "gov",
    "hon", "ie", "inc", "jan", "jr", "jul", "jun", "lt", "ltd", "maj", "mar", "mr", "mrs", "ms",
    "mt", "nov", "no", "nos", "oct", "op", "p", "pp", "pres", "prof", "r", "rev", "sen", "sep",
    "sept", "sgt", "sr", "st", "v", "viz", "vol", "vols", "vs",
}  # fmt: skip
"""Words whose point does not end a sentence, in small letters and without the point."""

_END = re.compile(r"[.!?][\"'\u201d\u2019)\]]*(?=\s+[\"'\u201c\u2018(\[]*[A-Z0-9\u00c0-\u00de])")
_LAST_WORD = re.compile(r"([\w.]+)\.[\"'\u201d\u2019)\]]*$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """First and one-past-last character of every sentence of one paragraph."""
    spans, start = [], 0
    for match in _END.finditer(text):
        end = match.end()
        if not _is_abbreviated(text[start:end]):
            spans.append((start, end))
            start = end + len(text[end:]) - len(text[end:].lstrip())
    if text[start:].strip():
        spans.append((start, len(text.rstrip())))
    return spans


def split_sentences(text: str) -> list[str]:
    """The sentences of one paragraph."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _is_abbreviated(text: str) -> bool:
    """Does the text end in an abbreviation, an initial (`J.`) or a dotted one (`U.S.`)?"""
    found = _LAST_WORD.search(text)
    if found is None:
        return False
    word = found[1]
    if "." in word:
        return all(len(part) <= 2 for part in word.split("."))
    return word.casefold() in ABBREVIATIONS or (len(word) == 1 and word.isupper())
