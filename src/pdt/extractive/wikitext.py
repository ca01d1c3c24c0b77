"""Wikitext of a dump as plain sections: ordinary prose paragraphs under their headings.

Lists, tables, images, templates and footnotes are left out, as the sources of §4.1 leave them out.
A section in which an ordinary paragraph does not come out clean is left out whole.
"""

import gzip
import html
import re
from collections.abc import Iterator
from pathlib import Path

from pdt.extractive.texts import TextSection, clean_paragraph

WHOLE_WORDS = (110, 700)
"""Words of a source: an article of so many is one, of a longer one each section of so many is."""

_NOT_PROSE = re.compile(
    r"(?i)^(bibliography|discography|external links?|filmography|footnotes|further reading|notes|"
    r"publications|references|related|see also|sources|trivia|works)\b"
)
_HEADING = re.compile(r"^(={2,4})\s*(.+?)\s*\1\s*$")
_NOT_A_PARAGRAPH = re.compile(r"^[*#:;|!{}<]|^\s|^-{3,}")


def read_pages(path: Path) -> Iterator[tuple[str, str]]:
    """Title and wikitext of every article of a gzipped dump; a cut last page is left out."""
    title = ""
    text: list[str] | None = None
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if "<title>" in line:
                title = html.unescape(line.split("<title>")[1].split("</title>")[0])
            start = line.find("<text")
            if start >= 0:
                text, line = [], line[line.index(">", start) + 1 :]
            if text is not None:
                end = line.find("</text>")
                text.append(line[:end] if end >= 0 else line)
                if end >= 0:
                    whole = html.unescape(html.unescape("".join(text)))
                    if ":" not in title and not whole.lstrip().lower().startswith("#redirect"):
                        yield title, whole
                    text = None


def units_of(wikitext: str) -> Iterator[tuple[TextSection, ...]]:
    """The parts of an article that are sources by themselves: all of it, its lead, its sections."""
    parts = [part for part in _parts(wikitext) if not _NOT_PROSE.match(part[0][0] or "")]
    whole = [section for part in parts for section in part]
    if _words(whole) <= WHOLE_WORDS[1]:
        parts = [whole]
    for part in parts:
        kept = [(heading, paragraphs) for heading, paragraphs in part if paragraphs]
        if not WHOLE_WORDS[0] <= _words(kept) <= WHOLE_WORDS[1]:
            continue
        clean = [[clean_paragraph(p) for p in paragraphs] for _, paragraphs in kept]
        if all(p is not None for paragraphs in clean for p in paragraphs):
            yield tuple(
                TextSection(heading=heading, paragraphs=tuple(p for p in paragraphs if p))
                for (heading, _), paragraphs in zip(kept, clean, strict=True)
            )


_Section = tuple[str | None, list[str]]


def _words(sections: list[_Section]) -> int:
    return sum(len(p.split()) for _, paragraphs in sections for p in paragraphs)


def _parts(wikitext: str) -> list[list[_Section]]:
    """Sections by top-level heading, the lead first."""
    parts: list[list[_Section]] = [[(None, [])]]
    going_on = False
    for line in _plain(wikitext).splitlines():
        heading = _HEADING.match(line)
        if heading:
            name = " ".join(heading[2].split())
            if len(heading[1]) == 2:
                parts.append([(name, [])])
            else:
                parts[-1].append((name, []))
            going_on = False
        elif not line.strip() or _NOT_A_PARAGRAPH.match(line):
            going_on = False
        else:
            paragraphs = parts[-1][-1][1]
            if going_on:
                paragraphs[-1] += " " + line
            else:
                paragraphs.append(line)
            going_on = True
    return parts


def _plain(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"(?is)<(ref|table|gallery)\b[^>/]*>.*?</\1>|<ref[^>]*/>", "", text)
    text = re.sub(r"(?s)\{\|.*?\|\}", "", text)
    for _ in range(6):
        shorter = re.sub(r"\{\{[^{}]*\}\}", "", text)
        if shorter == text:
            break
        text = shorter
    text = _without_images(text)
    text = re.sub(r"\[\[(?:[a-z-]{2,12}|Category):[^\]]*\]\]", "", text)
    text = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]|]+)\]\]", r"\1", text)
    text = re.sub(r"\[https?://\S+ ([^\]]+)\]", r"\1", text)
    text = re.sub(r"\[https?://\S+\]", "", text)
    text = re.sub(r"'{2,5}", "", text)
    text = re.sub(r"(?i)<br ?/?>|</?(?:small|i|b|em|nowiki|sup|sub)>", " ", text)
    return text.replace("\u00a0", " ")


def _without_images(text: str) -> str:
    """Images hold links of their own, so their brackets are counted."""
    out, place = [], 0
    for found in re.finditer(r"\[\[(?:Image|File):", text):
        if found.start() < place:
            continue
        out.append(text[place : found.start()])
        depth, place = 0, found.start()
        while place < len(text):
            if text.startswith("[[", place):
                depth, place = depth + 1, place + 2
            elif text.startswith("]]", place):
                depth, place = depth - 1, place + 2
                if depth == 0:
                    break
            else:
                place += 1
    out.append(text[place:])
    return "".join(out)
