"""Is this the whole of one Parsoid page? What it says of itself; everything else is refused.

Only Parsoid's HTML says which words came from a template or a footnote. The older parser's HTML, a
truncated download and a page built to exhaust the reader are refused before any text is taken.

Paper: §4.1.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pdt.config import HtmlLimits
from pdt.errors import SourceRefused

_FORMAT = re.compile(rb'<meta property="mw:html:?[vV]ersion" content="(\d+)\.(\d+)\.\d+"')
_END = re.compile(rb"</body>\s*</html>\s*\Z")
_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# A closing tag inside an attribute would make the count below too low.
_HIDDEN_CLOSE = re.compile(rb"=(?:\"[^\"]*|'[^']*)</(?!ref|nowiki)")
_VOID = frozenset(
    b"area base br col embed hr img input link meta param ref references source track wbr".split()
)
_REVISION = re.compile(r"/revision/(\d+)$")
MOST_STRAY_TAGS = 64
"""Real pages that an editor re-indented hold a few; more is damage."""


@dataclass(frozen=True)
class Page:
    """A parsed Parsoid page and its marks."""

    tree: LexborHTMLParser
    where: str

    @property
    def body(self) -> LexborNode:
        body = self.tree.body
        if body is None:
            raise SourceRefused(self.where, "has no body", "Take the revision again.")
        return body

    @cached_property
    def title(self) -> str:
        node = self.tree.css_first("title")
        return "" if node is None else " ".join(node.text().split())

    @cached_property
    def revision_id(self) -> int | None:
        root = self.tree.root
        found = _REVISION.search((root.attributes.get("about") or "") if root else "")
        if found:
            return int(found[1])
        link = self.tree.css_first('link[rel="dc:isVersionOf"]')
        number = (link.attributes.get("data-revision") or "") if link else ""
        return int(number) if number.isdecimal() else None

    @cached_property
    def page_id(self) -> int | None:
        return self._number("mw:pageId")

    @cached_property
    def namespace(self) -> int | None:
        return self._number("mw:pageNamespace")

    @cached_property
    def sha1(self) -> str | None:
        """SHA-1 of the wikitext this was rendered from, in hexadecimal."""
        return self._meta("mw:revisionSHA1")

    @cached_property
    def language(self) -> str | None:
        return self.body.attributes.get("lang")

    @cached_property
    def is_redirect(self) -> bool:
        return self.tree.css_first('link[rel="mw:PageProp/redirect"]') is not None

    @cached_property
    def is_disambiguation(self) -> bool:
        return (
            self.tree.css_first('meta[property="mw:PageProp/disambiguation"]') is not None
            or any("isambiguation pages" in name for name in self.categories)
            or self.title.endswith("(disambiguation)")
        )

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Names of the categories, without prefix and sort key."""
        links = self.tree.css('link[rel="mw:PageProp/Category"]')
        targets = [(link.attributes.get("href") or "").split("#")[0] for link in links]
        names = [unquote(target).rpartition("Category:")[2].replace("_", " ") for target in targets]
        return tuple(dict.fromkeys(name for name in names if name))

    def _meta(self, name: str) -> str | None:
        node = self.tree.css_first(f'meta[property="{name}"]')
        return node.attributes.get("content") if node is not None else None

    def _number(self, name: str) -> int | None:
        text = self._meta(name) or ""
        return int(text) if text.isdecimal() else None


def open_page(html: bytes, limits: HtmlLimits, *, where: str) -> Page:
    """The page, if it is whole Parsoid HTML of a form we know; else one refusal."""
    if len(html) > limits.bytes:
        raise SourceRefused(
            where,
            f"has {len(html):,} bytes of HTML, more than {limits.bytes:,}",
            "No article is that large. Raise sources.html.bytes if this one is.",
        )
    try:
        html.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceRefused(
            where, f"is not UTF-8 at byte {error.start}", "Take the revision again."
        ) from error
    _refuse_other_formats(html, where)
    _refuse_damage(html, limits, where)
    page = Page(LexborHTMLParser(html), where)
    if page.body.css_first("section[data-mw-section-id]") is None:
        raise SourceRefused(where, "has no Parsoid sections", _TAKE_PARSOID)
    return page


_TAKE_PARSOID = "Take Parsoid HTML 2.x from /w/rest.php/v1/revision/REVISION/html."


def _refuse_other_formats(html: bytes, where: str) -> None:
    version = _FORMAT.search(html)
    if version is None:
        legacy = b"mw-parser-output" in html or b"wgRevisionId" in html
        what = "is HTML of MediaWiki's older parser" if legacy else "is not Parsoid HTML"
        raise SourceRefused(
            where, f"{what}: it does not mark templates and footnotes", _TAKE_PARSOID
        )
    if version[1] != b"2":
        found = b".".join(version.groups()).decode()
        raise SourceRefused(where, f"is Parsoid HTML {found}, and we read 2.x", _TAKE_PARSOID)
    if not _END.search(html[-4096:]):
        raise SourceRefused(
            where, "is cut off: it does not end with </body></html>", "Take the revision again."
        )


def _refuse_damage(html: bytes, limits: HtmlLimits, where: str) -> None:
    """Refuse what no serializer writes, before the parser pays for it.

    Parsing costs tags times depth, so ten thousand open elements would keep it busy for minutes.
    """
    stack: list[bytes] = []
    stray = len(_HIDDEN_CLOSE.findall(html))
    for closing, name in _TAG.findall(html):
        if name in _VOID:
            continue
        if not closing:
            stack.append(name)
            if len(stack) > limits.depth:
                raise SourceRefused(
                    where, f"nests more than {limits.depth} elements", "Take the revision again."
                )
        elif stack and stack[-1] == name:
            stack.pop()
        else:
            stray += 1
            if name in stack[-4:]:
                while stack.pop() != name:
                    pass
    if stray > MOST_STRAY_TAGS:
        raise SourceRefused(
            where, f"is damaged: {stray} tags do not match", "Take the revision again."
        )
