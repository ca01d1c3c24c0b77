"""The duel as a picture: a bar a side, its quartiles, and what reading its bytes alone would
take."""

from xml.sax.saxutils import escape

from pdt.bench.duel import DuelResult

_LEFT, _WIDTH, _ROW, _TOP = 300, 460, 26, 58


def duel_svg(result: DuelResult, title: str) -> str:
    longest = max(side.timing.spread[1] for side in result.sides)
    height = _TOP + _ROW * len(result.sides) + 34

    def at(seconds: float) -> float:
        return _LEFT + _WIDTH * seconds / longest

    note = "seconds of a whole answer, median and quartiles; dark: reading the bytes of its rounds"
    note += f" at {result.bytes_per_second / 1e9:.1f} GB/s"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="#fff"/><text x="12" y="22" font-size="14" '
        f'font-weight="bold">{escape(title)}</text>',
        f'<text x="12" y="42" fill="#555">{escape(note)}</text>',
    ]
    for row, side in enumerate(sorted(result.sides, key=lambda one: one.timing.median)):
        y, (low, high) = _TOP + row * _ROW, side.timing.spread
        ours = not side.name.startswith(("transformers", "llama"))
        reading = side.rounds * side.bytes_a_round / result.bytes_per_second
        middle = y + 9
        lines += [
            f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(side.name)}</text>',
            _bar(at(0), y, at(side.timing.median), "#9ecae1" if ours else "#cccccc"),
            _bar(at(0), y, at(min(reading, side.timing.median)), "#3182bd" if ours else "#777777"),
            f'<line x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{middle}" y2="{middle}" '
            'stroke="#000"/>',
            f'<text x="{at(high) + 6:.1f}" y="{y + 13}">{side.timing.median:.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _bar(left: float, y: float, right: float, colour: str) -> str:
    return f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="18" fill="{colour}"/>'
