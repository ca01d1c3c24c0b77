"""Small pages in Parsoid's own form, made by hand, for what real ones show only by chance."""

import hashlib
import json
from html import escape
from typing import Any

from pdt.config import HtmlLimits, load_config

LIMITS: HtmlLimits = load_config("canonical").sources.html


def page(body: str, *, title: str = "Siege of Vell", revision: int = 7, **meta: str) -> bytes:
    """A whole page around some sections."""
    extra = "".join(f'<meta property="{k}" content="{escape(v)}"/>' for k, v in meta.items())
    return (
        '<!DOCTYPE html>\n<html prefix="dc: http://purl.org/dc/terms/ '
        'mw: http://mediawiki.org/rdf/" '
        f'about="https://en.wikipedia.org/wiki/Special:Redirect/revision/{revision}">'
        '<head><meta charset="utf-8"/><meta property="mw:pageId" content="70"/>'
        '<meta property="mw:pageNamespace" content="0"/>'
        '<meta property="mw:htmlVersion" content="2.8.0"/>'
        f"{extra}<title>{escape(title)}</title></head>"
        f'<body lang="en" class="mw-parser-output parsoid-body">{body}</body></html>'
    ).encode()


def section(content: str, *, heading: str | None = None, number: int = 0, level: int = 2) -> str:
    head = f'<h{level} id="h{number}">{heading}</h{level}>' if heading else ""
    return f'<section data-mw-section-id="{number}">{head}{content}</section>'


def mark(note: str, number: str = "1", **attributes: str) -> str:
    """A footnote mark."""
    extra = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return (
        f'<sup about="#mwt{number}" class="mw-ref reference" typeof="mw:Extension/ref"{extra}>'
        f'<a href="./Page#{note}"><span class="mw-reflink-text">[{number}]</span></a></sup>'
    )


def notes(*entries: str) -> str:
    return (
        '<div class="mw-references-wrap" typeof="mw:Extension/references">'
        f'<ol class="mw-references references">{"".join(entries)}</ol></div>'
    )


def note(name: str, content: str, *, group: str = "", inside: str = "") -> str:
    link = f' data-mw-group="{group}"' if group else ""
    return (
        f'<li id="{name}"><a href="./Page#ref"{link} rel="mw:referencedBy">↑</a> '
        f'<span id="mw-reference-text-{name}" class="mw-reference-text">{content}</span>'
        f"{inside}</li>"
    )


def template(name: str, shown: str, *, tag: str = "span", number: int = 90, **fields: str) -> str:
    """An expanded template."""
    call = {
        "template": {
            "target": {"wt": name, "href": f"./Template:{name}"},
            "params": {key: {"wt": value} for key, value in fields.items()},
            "i": 0,
        }
    }
    data = escape(json.dumps({"parts": [call]}))
    return f'<{tag} about="#mwt{number}" typeof="mw:Transclusion" data-mw="{data}">{shown}</{tag}>'


def sha1_of(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()
