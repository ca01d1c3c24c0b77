"""Ways to break a file: its bytes, its text, or the tree it holds."""

import json
import random
import re
from copy import deepcopy
from typing import Any

DEEP = 100_000
LONG_NUMBER = "7" * 5_000
_RAW = "@@{}@@"
"""A JSON text for which there is no Python value is put in after the tree was written."""
_RAW_TEXTS = (
    LONG_NUMBER, "[" * DEEP, "[" * 900 + "]" * 900, '{"a":' * DEEP, "1e999", "-0", "NaN",
    '"\\ud800"', '"\\udc00x"', "\\", "", "0x1f", '"\\u0000"',
)  # fmt: skip
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 1e308, 10**8, 2**31, 2**63, -(2**63), 10**400,
    "", " ", "x", "0", "\n", "x" * 400, "a/b", "../x", "/etc/passwd", "\x00", "漢🧂", "\u202e",
    "null", "2026-02-31", [], {}, [[]], [None], [{}], {"x": 1}, {"": None}, [1, 2, 3], [-1],
)  # fmt: skip


def broken_bytes(data: bytes, draw: random.Random) -> bytes:
    """Cut, holed, flipped, repeated, or with strange bytes put in."""
    kind = draw.randrange(6)
    at = draw.randrange(len(data) or 1)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + draw.randrange(1, 200) :]
    if kind == 2:
        flipped = bytearray(data or b"x")
        for _ in range(draw.choice((1, 1, 2, 8, 64))):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        return bytes(flipped)
    if kind == 3:
        piece = data[at : at + draw.randrange(1, 200)]
        return data[:at] + piece * draw.randrange(2, 20) + data[at:]
    if kind == 4:
        strange = draw.choice((b"\xff\xfe", b"\x00", b"\xed\xa0\x80", b"[" * 2_000, b"\n\n", b"{"))
        return data[:at] + strange + data[at:]
    return b""


def broken_tree(tree: Any, draw: random.Random) -> str:
    """JSON of `tree` with one to three places changed; `tree` itself is changed too."""
    raw: list[str] = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        _break_one(tree, draw, raw)
    text = json.dumps(tree)
    for number, value in enumerate(raw):
        text = text.replace(json.dumps(_RAW.format(number)), value)
    return text


def _break_one(tree: Any, draw: random.Random, raw: list[str]) -> None:
    places = _places(tree)
    if not places:
        return
    node, key = draw.choice(places)
    kind = draw.randrange(8)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[draw.choice(("", "x", "format", str(key) + "x", "x" * 300))] = node.pop(key)
    elif kind == 2:
        raw.append(draw.choice(_RAW_TEXTS))
        node[key] = _RAW.format(len(raw) - 1)
    elif kind == 3 and isinstance(node[key], list) and node[key]:
        draw.choice((node[key].pop, node[key].reverse, node[key].clear))()
    elif kind == 4 and isinstance(node[key], int | float):
        node[key] = node[key] + draw.choice((-1, 1, 1000)) if abs(node[key]) < 1e300 else 0
    elif kind == 5 and isinstance(node[key], str) and node[key]:
        at = draw.randrange(len(node[key]))
        node[key] = node[key][:at] + draw.choice(("", "x", "é", "=")) + node[key][at + 1 :]
    else:
        node[key] = deepcopy(draw.choice(HOSTILE))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys; of a long list only some, so that fields are met."""
    keys: list[Any] = []
    if isinstance(tree, dict):
        keys = list(tree)
    elif isinstance(tree, list):
        keys = list(range(min(len(tree), 4)))
    found = [(tree, key) for key in keys]
    for key in keys:
        found += _places(tree[key])
    return found


_YAML_WORDS = (
    "2001-99-99", "2026-02-31", "!!timestamp x", "!!int ''", "!!bool x", "!!binary '$'", "&a [*a]",
    "0x" + "f" * 6_000, LONG_NUMBER, "[" * 2_000, "{a: " * 2_000, "? [1]", "<<: *b", "~", ".inf",
    ".nan", "1_000", "190:20:30", "'", "|", "%", "\t", "@", "`", "\x85", "\ud800", "\udcff", "-1",
    "!!python/object:os.system x", "!!set {a, b}", "!!omap [a: 1]", "=", "1e400", "{}", "[]", "5",
)  # fmt: skip


def broken_text(text: str, draw: random.Random) -> str:
    """A word put in the place of another, a line lost or doubled, characters changed."""
    kind = draw.randrange(5)
    if kind == 0:
        words = [match.span() for match in re.finditer(r"[\w.-]+", text)]
        start, end = draw.choice(words) if words else (0, 0)
        return text[:start] + draw.choice(_YAML_WORDS) + text[end:]
    if kind == 1:
        lines = text.splitlines(keepends=True)
        at = draw.randrange(len(lines) or 1)
        return "".join(lines[:at] + lines[at : at + 1] * draw.choice((0, 2)) + lines[at + 1 :])
    if kind == 2:
        at = draw.randrange(len(text) + 1)
        return text[:at] + draw.choice(_YAML_WORDS) + text[at:]
    if kind == 3:
        values = [match.span(1) for match in re.finditer(r"[:=] *(.+)", text)]
        start, end = draw.choice(values) if values else (0, 0)
        return text[:start] + draw.choice(_YAML_WORDS) + text[end:]
    return broken_bytes(text.encode(errors="surrogatepass"), draw).decode(errors="surrogateescape")


def broken_json(data: bytes, draw: random.Random) -> bytes:
    """The bytes, or the tree in them."""
    if draw.random() < 0.2:
        return broken_bytes(data, draw)
    return broken_tree(json.loads(data), draw).encode()
