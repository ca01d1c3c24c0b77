"""Footnotes: which stand where, what each says, and which is a citation at all.

An occurrence is a footnote mark in a kept paragraph. A mark of the default group cites; a mark of a
named group (remarks, translations) cites only when its note holds a citation. A sub-reference
(`<ref details=…>`) cites the work of its main note.

Paper: §4.1, Table 1.
"""

import hashlib
import re
from dataclasses import dataclass, replace

from selectolax.lexbor import LexborNode

from pdt.sources.page import Page
from pdt.sources.prose import Prose, display_text, is_apparatus, template_calls

CITATION_TEMPLATES = re.compile(r"^(?:cite|citation$|cita |vcite)")
SHORT_TEMPLATES = re.compile(r"^(?:harv|sfn|sfm|short citation)")
_DATED = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b|ISBN")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True)
class CiteElement:
    """One formatted citation in the page: a cite element, or the template call behind it."""

    anchor: str | None
    """Its CITEREF anchor, which short footnotes point at."""
    text: str
    kind: str
    """book, journal, web, …: the class that the template gave it."""
    fields: dict[str, str]
    """Parameters of its template, where the page still has them."""
    links: tuple[str, ...]
    """Targets of its links."""


@dataclass(frozen=True)
class Footnote:
    """One entry of a reference list."""

    id: str
    """As the page spells it."""
    group: str
    """Empty for the default group."""
    text: str
    cites: tuple[CiteElement, ...]
    short_anchors: tuple[str, ...]
    """CITEREF anchors that its short footnotes point at."""
    links: tuple[str, ...]
    main: str | None
    """For a sub-reference, the note it details."""

    @property
    def is_citation(self) -> bool:
        return not self.group or bool(self.cites or self.short_anchors) or self.main is not None


def read_footnotes(page: Page) -> dict[str, Footnote]:
    """Every footnote of the page by its id."""
    notes: dict[str, Footnote] = {}
    for item in page.tree.css('li[id^="cite_note-"]'):
        note = _note(item)
        notes.setdefault(note.id, note)
    return notes


def read_bibliography(page: Page) -> list[CiteElement]:
    """What short footnotes may point at: anchored citations, and entries of hand-typed lists."""
    anchored = [_cite(node, {}) for node in page.tree.css('[id^="CITEREF"]') if not _in_note(node)]
    typed = []
    for item in _apparatus_items(page):
        if item.css_first('[id^="CITEREF"]') is None and item.css_first("p, ul, ol") is None:
            cite = _cite(item, _inner_identifiers(item))
            if cite.fields or _DATED.search(cite.text):
                typed.append(cite)
    return anchored + typed


def _in_note(node: LexborNode) -> bool:
    """Citations inside footnotes are read with their notes."""
    outer = node.parent
    while outer is not None:
        if (outer.attributes.get("id") or "").startswith("cite_note-"):
            return True
        outer = outer.parent if outer.tag not in ("section", "body") else None
    return False


def _apparatus_items(page: Page) -> list[LexborNode]:
    """List entries under References, Bibliography and the like."""
    found = []
    for section in page.tree.css("section[data-mw-section-id]"):
        heading = section.css_first("h2, h3, h4")
        if heading is not None and is_apparatus(display_text(heading)):
            found += section.css("ul > li")
    return found


def _inner_identifiers(item: LexborNode) -> dict[str, str]:
    """Numbers that a template such as {{ISBN}} gives inside a hand-typed entry."""
    return {
        name: values.get("1", "")
        for node in item.css('[typeof~="mw:Transclusion"]')
        for name, values in template_calls(node)
        if name in ("isbn", "oclc", "doi", "jstor")
    }


def cited_footnotes(prose: Prose, notes: dict[str, Footnote]) -> set[str]:
    """Ids of the notes that kept paragraphs cite with."""
    marks = {
        occurrence.note
        for section in prose.sections
        for paragraph in section.paragraphs
        for occurrence in paragraph.occurrences
    }
    return {note for note in marks if note in notes and notes[note].is_citation}


def citation_id(note: str) -> str:
    """A footnote's id as a short name; ids with other letters keep a digest of the original."""
    if _ID.fullmatch(note):
        return note
    plain = re.sub(r"[^A-Za-z0-9._:-]", "_", note)[:100]
    return f"{plain}.{hashlib.sha256(note.encode()).hexdigest()[:12]}"


def _note(item: LexborNode) -> Footnote:
    name = item.attributes.get("id") or ""
    body = next(
        (
            child
            for child in item.css("span.mw-reference-text")
            if child.attributes.get("id") in (f"mw-reference-text-{name}", None)
        ),
        None,
    )
    backlink = item.css_first("a[data-mw-group]")
    group = (backlink.attributes.get("data-mw-group") or "") if backlink else ""
    outer = item.parent.parent if item.parent is not None else None
    inner = item.parent is not None and "mw-subreference-list" in (
        item.parent.attributes.get("class") or ""
    )
    note = Footnote(name, group, "", (), (), (), None)
    if inner and outer is not None:
        note = replace(note, main=outer.attributes.get("id"))
    if body is None:
        return note
    links = tuple(link.attributes.get("href") or "" for link in body.css("a[href]"))
    return replace(
        note,
        text=display_text(body) or _short_text(body),
        cites=tuple(_cites(body)),
        short_anchors=tuple(
            dict.fromkeys(link.partition("#")[2] for link in links if "#CITEREF" in link)
        ),
        links=links,
    )


def _cites(body: LexborNode) -> list[CiteElement]:
    """The citations of one footnote, each with its template's parameters."""
    fields: dict[str, dict[str, str]] = {}
    bare: list[CiteElement] = []
    for node in body.css('[typeof~="mw:Transclusion"]'):
        for name, values in template_calls(node):
            if not CITATION_TEMPLATES.match(name):
                continue
            about = node.attributes.get("about") or ""
            fields.setdefault(about, values)
            if node.tag == "a":  # the wiki lacks the template; its parameters are still there
                bare.append(CiteElement(None, _spelled(values), name.partition(" ")[2], values, ()))
    marked = [
        _cite(node, fields.get(node.attributes.get("about") or "", {}))
        for node in body.css("cite.citation")
    ]
    return marked + bare


def _short_text(body: LexborNode) -> str:
    """`Shaw 1976 p=3` of a short-footnote template that the wiki lacks."""
    calls = [
        call for node in body.css('[typeof~="mw:Transclusion"]') for call in template_calls(node)
    ]
    return "; ".join(
        " ".join(values.get(place, "") for place in ("1", "2", "3", "4")).strip()
        for name, values in calls
        if SHORT_TEMPLATES.match(name)
    )


def _cite(node: LexborNode, fields: dict[str, str]) -> CiteElement:
    classes = (node.attributes.get("class") or "").split()
    kind = next((c for c in classes if c not in ("citation", "cs1", "cs2", "Z3988")), "")
    anchor = node.attributes.get("id") or ""
    return CiteElement(
        anchor=anchor if anchor.startswith("CITEREF") else None,
        text=display_text(node),
        kind=kind,
        fields=fields,
        links=tuple(link.attributes.get("href") or "" for link in node.css("a[href]")),
    )


def _spelled(fields: dict[str, str]) -> str:
    wanted = ("last", "first", "author", "year", "date", "title", "work", "journal", "publisher")
    return ". ".join(fields[name].strip() for name in wanted if fields.get(name, "").strip())
