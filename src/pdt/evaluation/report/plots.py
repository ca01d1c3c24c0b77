"""Plots as inline SVG: bars with their intervals, and a trace. No script, no request, no font."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pdt.evaluation.measures.bootstrap import Measure

WIDTH, LABEL, VALUE, ROW = 860, 250, 170, 24


@dataclass(frozen=True)
class Bar:
    """One measure of a plot."""

    label: str
    measure: Measure
    tone: str = "a"
    """A colour class of the page's style."""


def bars(
    rows: Sequence[Bar],
    *,
    percent: bool = True,
    digits: int = 1,
    lines: Sequence[tuple[float, str]] = (),
) -> str:
    """Horizontal bars from zero with whiskers; `lines` are thresholds with their words."""
    if not rows:
        return ""
    ends = [0.0, *(v for row in rows for v in (row.measure.low, row.measure.high))]
    ends += [value for value, _ in lines]
    low, high = min(ends), max([*ends, 1.0] if percent else ends)
    span = (high - low) or 1.0
    room = WIDTH - LABEL - VALUE

    def x(value: float) -> float:
        return LABEL + (value - low) / span * room

    height = ROW * len(rows) + (16 if lines else 4)
    parts = [f'<line class="axis" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{ROW * len(rows)}"/>']
    for place, row in enumerate(rows):
        m, middle = row.measure, place * ROW + ROW / 2
        left, right = sorted((x(0), x(m.estimate)))
        scale, unit = (100, "%") if percent else (1, "")
        shown = f"{m.estimate * scale:.{digits}f}{unit}"
        interval = f"{m.low * scale:.{digits}f} to {m.high * scale:.{digits}f}"
        parts.append(
            f'<text x="{LABEL - 8}" y="{middle + 4:.0f}" text-anchor="end">'
            f"{escape(row.label)}</text>"
            f'<rect class="{row.tone}" x="{left:.1f}" y="{middle - 8:.0f}" '
            f'width="{right - left:.1f}" height="16"/>'
            f'<path class="whisker" d="M{x(m.low):.1f} {middle - 4:.0f}v8m0-4'
            f'H{x(m.high):.1f}m0-4v8"/>'
            f'<text x="{WIDTH - VALUE + 12}" y="{middle + 4:.0f}">{shown} '
            f'<tspan class="dim">{interval}</tspan></text>'
        )
    for value, words in lines:
        parts.append(
            f'<line class="gate" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="0" '
            f'y2="{ROW * len(rows)}"/><text class="dim" x="{x(value):.1f}" y="{height - 2}" '
            f'text-anchor="middle">{escape(words)}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" width="{WIDTH}">{"".join(parts)}</svg>'


def trace(seconds: Sequence[float], *, block_tokens: int) -> str:
    """Time of each round; barriers are marked."""
    if not seconds:
        return ""
    height, most = 90, max(seconds)
    step = (WIDTH - 20) / max(1, len(seconds) - 1)
    points = " ".join(
        f"{10 + n * step:.1f},{height - 8 - (height - 16) * s / (most or 1):.1f}"
        for n, s in enumerate(seconds)
    )
    borders = "".join(
        f'<path class="gate" d="M{10 + n * step:.1f} 0v{height}"/>'
        for n in range(block_tokens, len(seconds), block_tokens)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" width="{WIDTH}">{borders}'
        f'<polyline class="trace" points="{points}"/>'
        f'<text class="dim" x="{WIDTH - 6}" y="12" text-anchor="end">'
        f"longest {most * 1e3:.1f} ms</text></svg>"
    )
