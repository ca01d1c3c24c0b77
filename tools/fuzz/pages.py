"""Parsoid pages made of odd inline pieces in a drawn order: what real pages show only by chance."""

import json
import random
from html import escape

_WORDS = ("Vell", "the siege", " (", ")", ", ", "; ", ":", ".", " ", " and ", "born 1402", "[", "]")
_SOUNDS = ('<span class="IPA">x</span>', '<span class="haudio">listen</span>', " ", ", ", "")
_TEMPLATES = (
    "IPA", "IPAc-en", "IPA-label", "lang-rus", "lang", "coord", "convert", "circa", "sfn", "efn",
    "citation needed", "nihongo", "respell", "small", "nowrap", "math", "Template:x",
)  # fmt: skip
_ELEMENTS = (
    "<code>ls -l</code>",
    '<span class="mwe-math-element"><math><mi>y</mi></math></span>', "<br/>", "<b>bold</b>",
    '<sup class="noprint">[who?]</sup>', '<span style="display:none">z</span>', "<!-- c -->",
    "<style>.a{}</style>", '<a rel="mw:WikiLink" href="./Vell">town</a>', "<i> </i>",
    '<sup typeof="mw:Extension/ref" class="mw-ref"><a href="#cite_note-1">[1]</a></sup>',
    "<span hidden>h</span>", "<small>(listen)</small>", "<link/>", "<img alt='a'/>",
    "<ruby>x</ruby>", "<var>n</var>",
)  # fmt: skip


def odd_page(draw: random.Random) -> bytes:
    """A whole page of one to three sections."""
    body = "".join(_section(draw, number) for number in range(draw.randrange(1, 4)))
    return (
        '<!DOCTYPE html>\n<html prefix="mw: http://mediawiki.org/rdf/" '
        'about="https://en.wikipedia.org/wiki/Special:Redirect/revision/7">'
        '<head><meta charset="utf-8"/><meta property="mw:pageId" content="70"/>'
        '<meta property="mw:pageNamespace" content="0"/>'
        '<meta property="mw:htmlVersion" content="2.8.0"/><title>Vell</title></head>'
        f'<body lang="en" class="mw-parser-output parsoid-body">{body}</body></html>'
    ).encode()


def _section(draw: random.Random, number: int) -> str:
    heading = f"<h2>{_line(draw)}</h2>" if number else ""
    paragraphs = "".join(
        draw.choice((f"<p>{_line(draw)}</p>", _line(draw), "<ul><li>x</li></ul>", "<p></p>"))
        for _ in range(draw.randrange(1, 5))
    )
    return f'<section data-mw-section-id="{number}">{heading}{paragraphs}</section>'


def _line(draw: random.Random) -> str:
    return "".join(_piece(draw) for _ in range(draw.randrange(1, 12)))


def _piece(draw: random.Random) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(_ELEMENTS)
    if kind == 1:
        return _template(draw)
    if kind == 2:  # what names in parentheses are full of
        return f" ({''.join(draw.choices(_SOUNDS, k=4))})"
    return draw.choice(_WORDS)


def _template(draw: random.Random) -> str:
    """A template's nodes share an `about`; the first of them may be no more than its styles."""
    about = f'about="#mwt{draw.randrange(9)}"'
    call = {"template": {"target": {"wt": draw.choice(_TEMPLATES)}, "params": {}, "i": 0}}
    data = escape(json.dumps({"parts": [call]}))
    marks = f'{about} typeof="mw:Transclusion" data-mw="{data}"'
    if draw.random() < 0.4:
        return f"<style {marks}>.a{{}}</style><span {about}>{draw.choice(_WORDS)}</span>"
    return f"<span {marks}>{draw.choice(_WORDS)}</span>"
