"""Maintenance templates of a page, from its wikitext and from Parsoid's marks.

The wikitext names a template even where it stands inside a table or an infobox; the HTML names what
a template really expanded to. Either counts.

Paper: Table 1.
"""

import re
from fnmatch import translate
from functools import cache

from pdt.sources.data import published
from pdt.sources.page import Page
from pdt.sources.prose import template_name, template_names

_UNREAD = re.compile(r"<!--.*?(?:-->|\Z)|<nowiki>.*?</nowiki>|<pre[ >].*?</pre>", re.S | re.I)
_CALL = re.compile(r"\{\{([^{}|<>\[\]\n]{1,200})(?=[|}\n<])")


def templates_in_wikitext(wikitext: str) -> list[str]:
    """Names of all templates called, nested ones too, in order, in one spelling."""
    text = _UNREAD.sub("", wikitext)
    return [name for call in _CALL.findall(text) if (name := template_name(call))]


def templates_in_page(page: Page) -> list[str]:
    """Names of the templates that Parsoid marks in the HTML."""
    nodes = page.tree.css('[typeof~="mw:Transclusion"][data-mw]')
    return [name for node in nodes for name in template_names(node)]


def maintenance_family(name: str) -> str | None:
    """The family a template belongs to, or None for any other template."""
    if name in _exceptions():
        return None
    match = _pattern().fullmatch(name)
    return match.lastgroup if match else None


def maintenance_in(names: list[str]) -> dict[str, list[str]]:
    """The maintenance templates among `names`, by family."""
    found: dict[str, list[str]] = {}
    for name in names:
        if (family := maintenance_family(name)) is not None:
            found.setdefault(family, []).append(name)
    return found


@cache
def _exceptions() -> frozenset[str]:
    return frozenset(published("maintenance")["not_maintenance"])


@cache
def _pattern() -> re.Pattern[str]:
    groups = [
        f"(?P<{family}>{'|'.join(translate(name.strip()) for name in names)})"
        for family, names in published("maintenance")["families"].items()
    ]
    return re.compile("|".join(groups))
