"""A person's own text as the model reads it, the page of what came out, and signs out of range."""

import pytest

from pdt.config import load_config
from pdt.generation.events import (
    Barrier,
    DocumentResult,
    Done,
    Event,
    FinishReason,
    Note,
    PlanReady,
    Section,
)
from pdt.generation.in_range import signs_out_of_range
from pdt.generation.ledger import Ledger
from pdt.generation.page import Generated, render_generated
from pdt.sources.own_text import own_text

MARKDOWN = """---
tags: [a]
---
Rivers
======

The **Ostrow** is a [river](https://example.org) of `Kent`.
It is _long_.

```
code
```
| a | b |

## Bridges ##

- The first bridge fell in 1901.
- A second one stands.
<!-- no -->
"""

HTML = """<!doctype html><html><head><title>x</title><style>p {}</style></head><body>
<nav><p>Home</p></nav><h1>Rivers</h1>
<p>The <b>Ostrow</b> is a river&nbsp;of Kent.<br>It is long.</p>
<script>var a = "<p>no</p>"</script><table><tr><td>1</td></tr></table><h2>Bridges</h2>
<ul><li>The first bridge fell in 1901.<li>A second one stands.</ul></body></html>"""

PLAIN = """# Rivers

The Ostrow is a river of Kent. It is long.

## Bridges

The first bridge fell in 1901.

A second one stands."""


@pytest.mark.parametrize(
    ("text", "suffix"), [(MARKDOWN, ".md"), (MARKDOWN, ""), (HTML, ".html"), (HTML, "")]
)
def test_markdown_and_html_give_the_same_headings_and_paragraphs(text: str, suffix: str) -> None:
    assert own_text(text, suffix) == PLAIN


def test_plain_text_keeps_its_paragraphs_and_loses_its_line_breaks() -> None:
    assert own_text("One line\nand another.\n\n\n* two * stars", ".txt") == (
        "One line and another.\n\n* two * stars"
    )


def result(*texts: str, reason: FinishReason = FinishReason.EOS) -> DocumentResult:
    return DocumentResult(tuple(Section(lane, text, (), reason) for lane, text in enumerate(texts)))


def page_of(shown: DocumentResult) -> str:
    events: list[Event] = [
        PlanReady(0, 9, (0, 1, 2), ((0, 1), (0,), ())),
        Barrier(0, (Note(0, 0, (3, 7), 1),), ((True,),)),
    ]
    ledger = Ledger(rounds=4, lane_lengths=[[4, 4, 4]], seconds={"decode": 0.5})
    return render_generated(
        Generated(PLAIN, "Brief <me>.", "m", shown, events, Done((shown,), ledger))
    )


def test_every_sentence_of_the_page_links_to_its_source_or_is_marked() -> None:
    page = page_of(
        result(
            "The Ostrow is a river of Kent.", "Oslo & Rome are towns.", "A second one stands.\n\n"
        )
    )
    assert '<a href="#s0">The Ostrow is a river of Kent.' in page
    assert 'id="s0" class="told lane0"' in page
    assert 'class="bad"' in page and "Oslo &amp; Rome are towns." in page
    assert "2 of 3 sentences stand on a source sentence" in page
    assert 'class="again"' not in page
    twice = page_of(result("A second one stands.", "A second one stands, as told in the file.", ""))
    assert twice.count('class="again" title="said before"') == 1
    assert "<td>3 7" in page and "Brief &lt;me&gt;." in page and "<script" not in page


def test_a_text_out_of_range_shows_signs_and_one_in_range_none() -> None:
    config = load_config("digest")
    good = result("The Ostrow is a river of Kent.", "It is long.", "A second one stands.")
    assert signs_out_of_range(config, PLAIN, 400, good) == []
    bad = result(*["Oslo is a town of Norway."] * 3, reason=FinishReason.LENGTH)
    plan = PlanReady(0, 9, (0, 1, 2), ((0,), (0, 1), (0, 1)))
    signs = signs_out_of_range(config, PLAIN, 4000, bad, [plan])
    assert signs == [
        "the source has 4000 tokens, it learned 90 to 700",
        "its plans have [1, 2, 2] nodes, it learned 2 to 6",
        "the source bears out 0 of 3 written sentences",
        "2 of 3 sentences were said before",
        "3 of 3 lanes found no end",
    ]
    assert signs_out_of_range(load_config("nano"), PLAIN, 4000, bad, [plan]) == []
