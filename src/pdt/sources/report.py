"""Yield by source gate and by category, as numbers and as a picture.

Paper: Table 1.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape

from pydantic import Field

from pdt.contract import Contract, Id
from pdt.sources.verdict import AcceptedSource, RejectedSource

_ROW_HEIGHT, _LEFT, _WIDTH, _BAR = 26, 250, 860, 480
_GOOD, _BAD, _INK, _FAINT = "#2a7d46", "#c0504d", "#1d1d1f", "#8a8a8e"


class RequirementYield(Contract):
    """How one requirement of Table 1 divides the judged articles."""

    row: Id
    """The row of Table 1."""
    name: Id
    """The requirement."""
    passed: int
    """Articles that meet it."""
    failed: int
    """Articles that do not."""
    only_reason: int
    """Articles that nothing else rejects."""


class CategoryYield(Contract):
    """Accepted and rejected articles of one category."""

    category: str
    """The reviewer's category, or `no candidate`."""
    accepted: int
    """Accepted whole."""
    rejected: int
    """Rejected whole."""


class YieldReport(Contract):
    """What became of the judged articles."""

    judged: int
    """Bundles looked at."""
    accepted: int
    """Accepted whole."""
    unreadable: int
    """Rejected before any requirement could be measured."""
    requirements: tuple[RequirementYield, ...]
    """In the order of Table 1."""
    categories: tuple[CategoryYield, ...]
    """By name."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """What of the readable pages is in no article, by reason, the most frequent first."""


def yield_report(
    accepted: Sequence[AcceptedSource], rejected: Sequence[RejectedSource]
) -> YieldReport:
    """Count what one run judged."""
    verdicts = [one.verdict for one in accepted]
    verdicts += [one.verdict for one in rejected if one.verdict is not None]
    counts: dict[tuple[str, str], list[int]] = {}
    for verdict in verdicts:
        failures = sum(not r.passed for row in verdict.source_gates for r in row.requirements)
        for row in verdict.source_gates:
            for requirement in row.requirements:
                tally = counts.setdefault((row.row, requirement.name), [0, 0, 0])
                tally[0] += requirement.passed
                tally[1] += not requirement.passed
                tally[2] += not requirement.passed and failures == 1
    left_out: Counter[str] = Counter()
    for verdict in verdicts:
        left_out.update(verdict.left_out)
    categories: dict[str, list[int]] = {}
    everyone: list[AcceptedSource | RejectedSource] = [*accepted, *rejected]
    for one in everyone:
        name = one.candidate.category if one.candidate else "no candidate"
        tally = categories.setdefault(name, [0, 0])
        tally[isinstance(one, RejectedSource)] += 1
    return YieldReport(
        judged=len(accepted) + len(rejected),
        accepted=len(accepted),
        unreadable=sum(one.verdict is None for one in rejected),
        requirements=tuple(
            RequirementYield(row=row, name=name, passed=p, failed=f, only_reason=o)
            for (row, name), (p, f, o) in counts.items()
        ),
        categories=tuple(
            CategoryYield(category=name, accepted=a, rejected=r)
            for name, (a, r) in sorted(categories.items())
        ),
        left_out=dict(left_out.most_common()),
    )


def render_svg(report: YieldReport) -> str:
    """The report as one picture; every text in it is escaped."""
    parts: list[str] = []
    y = 34
    parts.append(_text(24, y, f"{report.accepted} of {report.judged} articles accepted", size=20))
    note = "green meets the requirement, red does not; in brackets: rejected by nothing else"
    parts.append(_text(24, y + 22, f"{report.unreadable} unreadable · {note}", colour=_FAINT))
    y += 56
    last = ""
    for one in report.requirements:
        if one.row != last:
            parts.append(_text(24, y, one.row.replace("_", " "), bold=True))
            y, last = y + _ROW_HEIGHT, one.row
        tail = f"{one.passed} / {one.passed + one.failed}"
        tail += f"  ({one.only_reason})" if one.only_reason else ""
        parts += _bar(y, one.name.replace("_", " "), one.passed, one.failed, tail)
        y += _ROW_HEIGHT
    y += 14
    parts.append(_text(24, y, "by category", bold=True))
    y += _ROW_HEIGHT
    for kind in report.categories:
        tail = f"{kind.accepted} / {kind.accepted + kind.rejected}"
        parts += _bar(y, kind.category, kind.accepted, kind.rejected, tail)
        y += _ROW_HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + 10}" '
        f'viewBox="0 0 {_WIDTH} {y + 10}" font-family="system-ui, sans-serif">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _bar(y: int, label: str, good: int, bad: int, tail: str) -> list[str]:
    total = good + bad
    width = round(_BAR * good / total, 1) if total else 0
    return [
        _text(40, y, label),
        f'<rect x="{_LEFT}" y="{y - 14}" width="{width}" height="18" fill="{_GOOD}"/>',
        f'<rect x="{_LEFT + width}" y="{y - 14}" width="{_BAR - width if total else 0}" '
        f'height="18" fill="{_BAD}" opacity="0.75"/>',
        _text(_LEFT + _BAR + 12, y, tail),
    ]


def _text(
    x: int, y: int, text: str, *, size: int = 14, colour: str = _INK, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold or size > 14 else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}>{escape(text)}</text>'
