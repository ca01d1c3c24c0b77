"""Read damaged copies of real Parsoid pages: no crash, no hang, no markup in the text.

    python tools/mutate_html.py DIRECTORY --count 50000

Every mutation is drawn from a seed and its number, so a failure can be made again alone. What may
happen to a damaged page is a refusal; what may not is any other exception, more than five seconds
of processor time, or text that holds markup.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pdt.config import load_config
from pdt.errors import PdtError
from pdt.sources.reading import article_of, read_page

MOST_SECONDS = 5.0
LARGEST = 80_000
"""Bytes of the pages that are damaged: small ones, so that many fit into an hour."""
# Written apart from the cleaner's own check: tags, attributes, entities and Parsoid's JSON.
LEAK = re.compile(
    r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>|\b(?:id|href|typeof|data-mw|class|rel)=[\"']"
    r"|&(?:amp|lt|gt|quot|nbsp|#\d+);|\"parts\":\[|\"template\":\{|mw:(?:WikiLink|Transclusion)"
)
TAG = re.compile(rb"<[^<>]{1,400}>")


def truncated(html: bytes, draw: random.Random) -> bytes:
    return html[: draw.randrange(len(html))]


def hole(html: bytes, draw: random.Random) -> bytes:
    """A piece is missing from the middle; the end is whole."""
    start = draw.randrange(len(html))
    return html[:start] + html[start + draw.randrange(1, 3000) :]


def swapped_tags(html: bytes, draw: random.Random) -> bytes:
    tags = [match.span() for match in TAG.finditer(html)]
    (a, b), (c, d) = sorted(draw.sample(tags, 2))
    return html[:a] + html[c:d] + html[b:c] + html[a:b] + html[d:]


def dropped_tags(html: bytes, draw: random.Random) -> bytes:
    tags = [match.span() for match in TAG.finditer(html)]
    for a, b in sorted(draw.sample(tags, min(len(tags), draw.randrange(1, 20))), reverse=True):
        html = html[:a] + html[b:]
    return html


def flipped_bytes(html: bytes, draw: random.Random) -> bytes:
    data = bytearray(html)
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def flipped_brackets(html: bytes, draw: random.Random) -> bytes:
    """Flips where they hurt: on brackets and quotes."""
    data = bytearray(html)
    places = [match.start() for match in re.finditer(rb"[<>\"'/=]", html)]
    for place in draw.sample(places, draw.choice((1, 1, 2, 5))):
        data[place] = draw.randrange(32, 127)
    return bytes(data)


def repeated(html: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(html))
    piece = html[start : start + draw.randrange(1, 200)]
    return html[:start] + piece * draw.randrange(1, 200) + html[start:]


def inserted(html: bytes, draw: random.Random) -> bytes:
    hostile = (
        b"<script>alert(1)</script>", b"<p>", b"</section>", b"<!--", b"]]>", b"<svg><p>", b"\x00",
        b"<table>", b"<b>" * 300, b"&#x202e;", b"<plaintext>", b"<template>", b"</body></html>",
        b"<style>p{}", b"<select><p>", b"\xff\xfe", b"<a <b <c", b"'\"><img src=x onerror=y>",
    )  # fmt: skip
    start = draw.randrange(len(html))
    return html[:start] + draw.choice(hostile) + html[start:]


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncated, hole, swapped_tags, dropped_tags,
    flipped_bytes, flipped_brackets, repeated, inserted,
)  # fmt: skip


def run(pages: list[tuple[str, bytes]], numbers: range, seed: int) -> dict[str, object]:
    """Damage and read; the tally, and every failure."""
    limits = load_config("canonical").sources.html
    tally: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    for number in numbers:
        draw = random.Random(f"{seed}:{number}")
        name, html = draw.choice(pages)
        kind = draw.choice(KINDS)
        damaged = kind(html, draw)
        label = f"{number} {kind.__name__} {name}"
        started = time.process_time()
        try:
            reading = read_page(damaged, limits, where=label)
            text = article_of(reading, "0" * 64, "A damaged page").text
        except PdtError:
            tally[f"{kind.__name__} refused"] += 1
        except Exception as error:
            failures.append(f"{label}: {type(error).__name__}: {error}")
        else:
            tally[f"{kind.__name__} read"] += 1
            if found := LEAK.search(text):
                failures.append(f"{label}: markup {found[0]!r}")
        taken = time.process_time() - started
        slowest = max(slowest, taken)
        if taken > MOST_SECONDS:
            failures.append(f"{label}: {taken:.1f} s")
    return {
        "pages": len(pages),
        "mutations": len(numbers),
        "tally": dict(sorted(tally.items())),
        "slowest_seconds": round(slowest, 3),
        "failures": failures,
    }


def small_pages(root: Path) -> list[tuple[str, bytes]]:
    found = []
    for path in sorted(root.rglob("*.html")):
        data = path.read_bytes()
        if len(data) <= LARGEST and b"mw:html" in data and b"data-mw-section-id" in data:
            found.append((path.parent.name + "/" + path.name, data))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where Parsoid pages lie")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1729)
    chosen = parser.parse_args()
    pages = small_pages(chosen.directory)
    result = run(pages, range(chosen.start, chosen.start + chosen.count), chosen.seed)
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
