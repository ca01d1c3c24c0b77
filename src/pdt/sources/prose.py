"""The strict DOM allowlist: headings and ordinary paragraphs of a Parsoid page, nothing else.

A paragraph counts when it stands directly in a section. Inside it, only the elements of
`data/inline.yaml` give display text; a footnote mark becomes a citation occurrence, and everything
else is left out with its content and its reason.

Paper: §4.1.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from pdt.errors import SourceRefused
from pdt.parse import parse_json
from pdt.sources.data import published
from pdt.sources.page import Page
from pdt.sources.traced import TracedBuilder, TracedText

REF = "mw:Extension/ref"
TRANSCLUSION = "mw:Transclusion"
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0", re.I)
_MARKUP = re.compile(
    r"[<>](?![\s\d])|(?<![\s\d(])[<>]"
    r"|\b(?:id|class|href|rel|style|title|about|typeof|data-[a-z-]+)\s*=\s*[\"']"
    r"|\"(?:wt|parts|template|params|target|href|name|attrs|body|html|extsrc|i)\"\s*:"
    r"|&(?:#\d+|#x[0-9a-fA-F]+|lt|gt|amp|quot|nbsp);|\bmw-|\bmw:"
)
"""What no reader of a rendered page sees: its presence means that the file is damaged."""
_WIKITEXT = re.compile(r"\[\[|\]\]|\{\{|\}\}")
"""What the wiki shows when it could not make sense of its own markup."""


@dataclass(frozen=True)
class Occurrence:
    """One footnote mark: the note it points at, and the character it stands after."""

    note: str
    """The fragment of its link: `cite_note-Henze-12`."""
    place: int


@dataclass(frozen=True)
class ProseParagraph:
    """One kept paragraph."""

    line: TracedText
    occurrences: tuple[Occurrence, ...]
    node: str
    """Where it stands in the page."""


@dataclass
class ProseSection:
    """A heading path and the paragraphs directly under it."""

    path: tuple[TracedText, ...]
    paragraphs: list[ProseParagraph] = field(default_factory=list)


@dataclass(frozen=True)
class Prose:
    """What was kept of a page, and a tally of what was left out, by reason."""

    sections: tuple[ProseSection, ...]
    left_out: Counter[str]
    unresolved: tuple[str, ...]
    """Inside kept paragraphs: templates that the wiki could not expand, and wikitext it shows."""


def read_prose(page: Page) -> Prose:
    """The page's content sections in reading order; a heading without prose below it is dropped."""
    walk = _Walk(page)
    walk.section(page.body, "body", ())
    sections = [s for s in walk.sections if s.paragraphs or _leads_to_prose(s, walk.sections)]
    for section in sections:
        lines = [*section.path, *(paragraph.line for paragraph in section.paragraphs)]
        for line in lines:
            if found := _MARKUP.search(line.text):
                near = line.text[max(0, found.start() - 20) : found.end() + 20]
                raise SourceRefused(
                    page.where, f"is damaged: markup in its text near {near!r}", "Take it again."
                )
            walk.unresolved += _WIKITEXT.findall(line.text)
    return Prose(tuple(sections), walk.left_out, tuple(walk.unresolved))


def display_text(node: LexborNode) -> str:
    """What a reader sees of any element, such as a footnote's text."""
    builder = TracedBuilder()
    _Walk(None).inline(node, "", builder)
    return builder.text()


def is_apparatus(heading: str) -> bool:
    """Is this the heading of references, notes, links and the like?"""
    return heading.casefold() in _apparatus()


def template_names(node: LexborNode) -> list[str]:
    """The templates that made this element, in lower case, from Parsoid's data-mw."""
    return [name for name, _ in template_calls(node)]


def template_calls(node: LexborNode) -> list[tuple[str, dict[str, str]]]:
    """Name and parameters of each template that made this element."""
    try:
        parts = parse_json(node.attributes.get("data-mw") or "{}").get("parts", [])
        return [
            (
                template_name(part["template"]["target"].get("wt") or ""),
                {
                    str(key).strip(): _unlinked(str(value.get("wt", "")))
                    for key, value in part["template"].get("params", {}).items()
                },
            )
            for part in parts
            if isinstance(part, dict) and "template" in part
        ]
    except (ValueError, TypeError, AttributeError, KeyError):
        return []  # a damaged data-mw names no template; the element is then judged by its classes


def _unlinked(wikitext: str) -> str:
    """A parameter's words: links give their display text, quotes for italics go."""
    words = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", wikitext)
    return " ".join(re.sub("'{2,}", "", words).split())


def template_name(text: str) -> str:
    """One spelling of a template's name: lower case, no namespace, spaces for underscores."""
    name = " ".join(unquote(text).replace("_", " ").split()).lower()
    return name.removeprefix("template:").strip()


class _Walk:
    """One pass over the body, without recursion into inline markup."""

    def __init__(self, page: Page | None) -> None:
        self.page = page
        self.sections: list[ProseSection] = []
        self.left_out: Counter[str] = Counter()
        self.unresolved: list[str] = []

    def section(self, node: LexborNode, where: str, path: tuple[TracedText, ...]) -> None:
        """The children of a section, in order; depth is bounded by the page's own limit."""
        here: ProseSection | None = None
        for place, child in _children(node):
            tag, spot = child.tag, _spot(child, where, place)
            if tag == "section":
                if child.attributes.get("about"):
                    self.left_out["template"] += 1
                    continue
                self.section(child, spot, here.path if here else path)
            elif tag == "p" and not child.attributes.get("about"):
                if here is None:
                    here = self._open(path)
                self._paragraph(child, spot, here)
            elif (heading := _heading(child)) is not None:
                line = self._line(heading, spot)
                if is_apparatus(line.text):
                    self.left_out["apparatus section"] += 1
                    return
                if line.text:
                    here = self._open((*path, line))
            elif child.is_element_node:
                self.left_out[f"<{tag}>"] += 1
            elif child.is_text_node and (child.text_content or "").strip():
                self.left_out["loose text"] += 1

    def _open(self, path: tuple[TracedText, ...]) -> ProseSection:
        self.sections.append(ProseSection(path))
        return self.sections[-1]

    def _paragraph(self, node: LexborNode, spot: str, into: ProseSection) -> None:
        builder = TracedBuilder()
        before = self.left_out.copy()
        occurrences = self.inline(node, spot, builder)
        line = builder.build()
        missing = [reason for reason in self.left_out - before if _is_wording(reason)]
        if missing and line.text:
            # A sentence without its formula or its code is no sentence of the source.
            self.left_out[f"paragraph with {missing[0]}"] += 1
        elif line.text:
            into.paragraphs.append(
                ProseParagraph(
                    line,
                    tuple(Occurrence(note, min(at, len(line.text))) for note, at in occurrences),
                    spot,
                )
            )

    def _line(self, node: LexborNode, spot: str) -> TracedText:
        builder = TracedBuilder()
        self.inline(node, spot, builder)
        return builder.build()

    def inline(self, node: LexborNode, where: str, builder: TracedBuilder) -> list[tuple[str, int]]:
        """Display text of everything inside `node` into `builder`; the citations it passed."""
        citations: list[tuple[str, int]] = []
        dropped: dict[str, str] = {}
        stack = [(child, where, place) for place, child in reversed(list(_children(node)))]
        while stack:
            child, base, place = stack.pop()
            if child.is_text_node:
                builder.add(child.text_content or "", f"{base}/{place}")
                continue
            if not child.is_element_node:
                continue
            attributes = child.attributes
            spot = _spot(child, base, place)
            kinds = (attributes.get("typeof") or "").split()
            if REF in kinds:
                if note := _note_of(child):
                    citations.append((note, builder.length))
                continue
            if child.tag == "br":
                builder.space(spot)
                continue
            reason = self._reason(child, kinds, dropped)
            if reason is not None:
                self.left_out[reason] += 1
                # A citation's page number belongs to its mark: nothing is missing without it.
                if reason not in ("citation page", "maintenance", "<link>", "<meta>", "<style>"):
                    builder.gap()
                citations += [(note, builder.length) for note in _notes_inside(child)]
                continue
            stack += [(inner, spot, at) for at, inner in reversed(list(_children(child)))]
        return citations

    def _reason(self, node: LexborNode, kinds: list[str], dropped: dict[str, str]) -> str | None:
        """Why an inline element is left out, or None to keep its words."""
        attributes, about = node.attributes, node.attributes.get("about")
        if about and about in dropped:
            return dropped[about]
        reason = _reason_by_itself(node, attributes)
        if TRANSCLUSION in kinds:
            # Asked for its styles and hidden parts too: the first of a template's nodes may be no
            # more than that, and it alone says which template made all of them.
            names = template_names(node)
            made_by = next(filter(None, map(_template_reason, names)), None)
            if node.tag == "a" and (attributes.get("href") or "").startswith("./Template:"):
                self.unresolved += names
                made_by = "unresolved template"
            if about and made_by is not None:
                dropped[about] = made_by
            reason = reason or made_by
        return reason


def _reason_by_itself(node: LexborNode, attributes: dict[str, str | None]) -> str | None:
    rules = published("inline")
    if node.tag not in _elements():
        return f"<{node.tag}>"
    for name in (attributes.get("class") or "").split():
        if name in rules["left_out_classes"]:
            return rules["left_out_classes"][name]
        if name == "reference":
            return "citation page"
    if "hidden" in attributes or _HIDDEN.search(attributes.get("style") or ""):
        return "hidden"
    target = unquote(attributes.get("href") or "")
    for pattern, reason in rules["left_out_links"].items():
        if node.tag == "a" and fnmatchcase(target, f"*/{pattern}"):
            return reason
    kind = attributes.get("typeof") or ""
    if "mw:Extension/math" in kind or "mw:Extension/chem" in kind:
        return "math"
    if "mw:File" in kind or "mw:Image" in kind:
        return "picture"
    if "mw:Extension/" in kind and "mw:Extension/nowiki" not in kind:
        return "extension"
    return None


def _is_wording(reason: str) -> bool:
    """Were words of a sentence left out, and not something beside it?"""
    return reason in published("inline")["wording"]


@cache
def _template_reason(name: str) -> str | None:
    for pattern, reason in published("inline")["left_out_templates"].items():
        if fnmatchcase(name, pattern):
            return reason
    return None


@cache
def _elements() -> frozenset[str]:
    return frozenset(published("inline")["elements"])


@cache
def _apparatus() -> frozenset[str]:
    return frozenset(published("apparatus")["headings"])


def _children(node: LexborNode) -> Iterator[tuple[int, LexborNode]]:
    child, place = node.first_child, 0
    while child is not None:
        yield place, child
        child, place = child.next, place + 1


def _spot(node: LexborNode, base: str, place: int) -> str:
    own = node.attributes.get("id") if node.is_element_node else None
    return own if own and "/" not in own else f"{base}/{place}"


def _heading(node: LexborNode) -> LexborNode | None:
    """A heading, bare or in the wrapper that newer MediaWiki puts around it."""
    if node.tag in _HEADINGS:
        return node
    if node.tag == "div" and "mw-heading" in (node.attributes.get("class") or "").split():
        for _, child in _children(node):
            if child.tag in _HEADINGS:
                return child
    return None


def _note_of(mark: LexborNode) -> str | None:
    """The footnote a mark points at."""
    link = mark.css_first("a[href]")
    target = (link.attributes.get("href") or "") if link is not None else ""
    note = unquote(target.partition("#")[2])
    return note if note.startswith("cite_note-") else None


def _notes_inside(node: LexborNode) -> list[str]:
    """Footnotes marked inside something whose own words are left out."""
    if node.tag in ("style", "link", "meta"):
        return []
    marks = node.css(f'[typeof~="{REF}"]')
    return [note for mark in marks if (note := _note_of(mark)) is not None]


def _leads_to_prose(section: ProseSection, sections: list[ProseSection]) -> bool:
    """Does a deeper heading under this one hold prose?"""
    start = next(place for place, other in enumerate(sections) if other is section)
    depth = len(section.path)
    for other in sections[start + 1 :]:
        if other.path[:depth] != section.path or depth == 0:
            return False
        if other.paragraphs:
            return True
    return False
