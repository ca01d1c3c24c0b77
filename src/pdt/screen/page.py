"""The report of a screen as one picture and one page; no script, no request.

The picture has three parts in one order, from what helps the headline measure most: effects with
their intervals, effect against cost, and every gate at a glance.

Paper: Appendix A.
"""

from collections.abc import Callable, Sequence
from html import escape

from pdt.evaluation.report.html import POLICY
from pdt.screen.effects import Effect
from pdt.screen.manifest import Screen
from pdt.screen.place import RunState
from pdt.screen.report import RunReport, ScreenReport, VariantCost
from pdt.screen.variants import BASELINE

WIDTH, LABEL, ROW, TOP = 1120, 210, 21, 58
PLOT_END, VALUES = 640, 655
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1b1f24 } .dim { fill: #667 } .head { font-weight: 600; font-size: 14px }
.axis { stroke: #9aa3ad; stroke-width: 1 } .row { fill: #f3f5f7 } .all { stroke: #b9c2cc; stroke-width: 3 }
.one { stroke: #3b6fb6; stroke-width: 3 } .dot { fill: #3b6fb6 } .better { fill: #1f7a3d } .worse { fill: #b3261e }
.faint { opacity: .22 } .unclear { fill: #d9dde3 } .small { font-size: 10px }
"""  # noqa: E501
_NO_RUN = "no run ended"


def render_svg(screen: Screen, report: ScreenReport) -> str:
    """report.svg."""
    order = _order(screen, report)
    first = _forest(report, order, TOP)
    second_top = TOP + ROW * len(order) + 70
    second = _against_cost(report, order, second_top)
    third_top = second_top + 330
    third, height = _gates(report, order, third_top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'role="img"><style>{STYLE}</style><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f"{first}{second}{third}</svg>\n"
    )


def render_page(screen: Screen, report: ScreenReport) -> str:
    """report.html: the picture, what it rests on, and every number."""
    ended = [run for run in report.runs if run.state is RunState.FINISHED]
    failed = [run for run in report.runs if run.failures]
    title = "A screen of one factor at a time" if report.kind == "one-factor" else "Interactions"
    form = "a short form of " if report.short else ""
    facts = [
        f"{len(ended)} of {len(report.runs)} runs are whole: {form}{screen.design.preset}, "
        f"{len(screen.variants)} variants at seeds {', '.join(map(str, screen.design.seeds))}.",
        report.comparison + ".",
        f"Judged on {screen.design.judged.documents} documents of {screen.held_out.digest[:12]}; "
        f"trained on {screen.records.documents} of {screen.records.digest[:12]}.",
        "A bootstrap over so few seeds is too sure of itself: an interval says what these seeds "
        "and documents say, and other seeds may lie outside it.",
        f"Drawn anew in every run: {', '.join(screen.start.anew) or 'nothing'}; "
        + (f"start {screen.start.model}." if screen.start.model else "no run starts trained."),
        f"Screen {screen.seal[:12]}, code {screen.code.revision[:12]}, report {report.seal[:12]}.",
    ]
    if not report.whole:
        facts.insert(0, "A DRAFT: some runs had not ended.")
    tables = "".join(
        f"<details><summary>{escape(row.measure)}: {_clear_count(report, row.measure)}</summary>"
        f"{_effects_table(report, row.measure)}</details>"
        for row in report.baseline
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1140px; margin: 2rem auto; padding: 0 1rem; color: #1b1f24;
  background: #fff }} table {{ border-collapse: collapse; font-size: 13px }} svg {{ max-width: 100%; height: auto }}
th, td {{ text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #d9dde3;
  font-variant-numeric: tabular-nums }} ul {{ color: #556 }} summary {{ cursor: pointer }} h2 {{ font-size: 1.1rem }}
</style></head><body><h1>{title}</h1><ul>{"".join(f"<li>{escape(fact)}</li>" for fact in facts)}</ul>
{render_svg(screen, report)}
<h2>Cost and benefit</h2>{_cost_table(report)}
<h2>Failures</h2>{_failures(failed)}
<h2>Every gate</h2>{tables}
<p>Measures of gates that nothing here has, or that read a clock and are not compared: {escape(", ".join(report.not_measured) or "none")}.</p>
</body></html>
"""  # noqa: E501


def _order(screen: Screen, report: ScreenReport) -> list[str]:
    """Variants by their effect on the headline, then those without one."""
    known = [row.measure for row in report.baseline]
    effects = report.of(report.headline) if report.headline in known else []
    ordered = [effect.variant for effect in effects]
    rest = [v.name for v in screen.variants if v.name not in {*ordered, BASELINE}]
    return ordered + rest


def _forest(report: ScreenReport, order: Sequence[str], top: float) -> str:
    of = {e.variant: e for e in report.effects if e.measure == report.headline}
    ends = [v for e in of.values() for v in (e.low_all, e.high_all)] + [0.0]
    x = _scale(min(ends), max(ends), LABEL + 30, PLOT_END)
    title = f"Effect on {report.headline}: variant minus baseline"
    parts = [
        _text(10, top - 36, title, "head"),
        _text(10, top - 18, "blue: this comparison alone; grey: all comparisons at once", "dim"),
    ]
    bottom = top + ROW * len(order)
    for place, name in enumerate(order):
        y = top + ROW * place + ROW / 2
        if place % 2 == 0:
            parts.append(
                f'<rect class="row" x="0" y="{y - ROW / 2}" width="{WIDTH}" height="{ROW}"/>'
            )
        parts.append(_text(LABEL, y + 4, f"{place + 1}  {name}", anchor="end"))
        effect = of.get(name)
        if effect is None:
            parts.append(_text(VALUES, y + 4, _NO_RUN, "dim"))
            continue
        parts += [
            _line(x(effect.low_all), x(effect.high_all), y, "all"),
            _line(x(effect.low), x(effect.high), y, "one"),
            f'<circle class="dot" cx="{x(effect.estimate):.1f}" cy="{y:.1f}" r="4"/>',
            _text(VALUES, y + 4, f"{effect.estimate:+.3f}"),
            _text(VALUES + 58, y + 4, f"{effect.low:+.3f} to {effect.high:+.3f}", "dim"),
            _text(VALUES + 190, y + 4, f"corrected p {effect.p_corrected:.2g}", "dim"),
            _text(VALUES + 330, y + 4, "clear" if effect.clear else "", "small"),
        ]
    parts.append(f'<line class="axis" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{bottom}"/>')
    for value in (min(ends), 0.0, max(ends)):
        parts.append(_text(x(value), bottom + 16, f"{value:+.2f}", "dim", anchor="middle"))
    return "".join(parts)


def _against_cost(report: ScreenReport, order: Sequence[str], top: float) -> str:
    """Effect on the headline over the predicted cost of training; numbers are those above."""
    of = {e.variant: e for e in report.effects if e.measure == report.headline}
    cost = {c.variant: c.relative for c in report.costs}
    shown = [name for name in order if name in of]
    costs, gains = [1.0, *(cost[n] for n in shown)], [0.0, *(of[n].estimate for n in shown)]
    x = _scale(min(costs), max(costs), LABEL + 30, WIDTH - 60)
    y = _scale(min(gains), max(gains), top + 240, top + 20)
    parts = [
        _text(10, top - 18, f"Cost against benefit: effect on {report.headline}", "head"),
        f'<line class="axis" x1="{LABEL}" x2="{WIDTH - 40}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>',
        f'<line class="axis" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="{top}" y2="{top + 255}"/>',
        _text(x(1.0), top + 272, "baseline", "dim", anchor="middle"),
    ]
    for value in dict.fromkeys((min(costs), max(costs))):
        if value != 1.0:
            parts.append(_text(x(value), top + 272, f"× {value:.3f}", "dim", anchor="middle"))
    parts.append(_text(10, top + 272, "predicted cost of training", "dim"))
    for value in dict.fromkeys((min(gains), max(gains))):
        parts.append(_text(LABEL - 6, y(value) + 4, f"{value:+.3f}", "dim", anchor="end"))
    for name in shown:
        parts.append(
            f'<circle class="dot" cx="{x(cost[name]):.1f}" cy="{y(of[name].estimate):.1f}" r="4"/>'
        )
        number = str(order.index(name) + 1)
        parts.append(_text(x(cost[name]) + 6, y(of[name].estimate) - 4, number, "small"))
    return "".join(parts)


def _gates(report: ScreenReport, order: Sequence[str], top: float) -> tuple[str, float]:
    """Every measured gate a column: better or worse, strong where it is clear."""
    measures = [row.measure for row in report.baseline]
    better = {row.measure: row.better for row in report.baseline}
    of = {(e.variant, e.measure): e for e in report.effects}
    step = min(30.0, (WIDTH - LABEL - 130) / max(1, len(measures)))
    head = top + 190
    parts = [
        _text(10, top, "Every gate: green is the way the gate wants, red the other", "head"),
        _text(10, top + 18, "strong where the interval for all comparisons leaves nothing out, "
              "faint where it does not, grey for no difference", "dim"),
    ]  # fmt: skip
    for column, measure in enumerate(measures):
        at = LABEL + 16 + column * step + step / 2
        parts.append(
            f'<text class="small" transform="translate({at:.1f} {head - 6}) rotate(-60)">'
            f"{escape(measure)}</text>"
        )
    for place, name in enumerate(order):
        y = head + ROW * place
        parts.append(_text(LABEL, y + 15, f"{place + 1}  {name}", anchor="end"))
        for column, measure in enumerate(measures):
            effect = of.get((name, measure))
            if effect is None:
                continue
            tone = _tone(effect, better[measure])
            parts.append(
                f'<rect class="{tone}" x="{LABEL + 16 + column * step:.1f}" y="{y + 2}" '
                f'width="{step - 3:.1f}" height="{ROW - 4}"><title>{escape(name)}, '
                f"{escape(measure)}: {effect.estimate:+.4f}</title></rect>"
            )
    return "".join(parts), head + ROW * len(order) + 20


def _tone(effect: Effect, better: str) -> str:
    if effect.estimate == 0:
        return "unclear"
    good = (effect.estimate > 0) == (better == "more")
    return ("better" if good else "worse") + ("" if effect.clear else " faint")


def _clear_count(report: ScreenReport, measure: str) -> str:
    clear = sum(effect.clear for effect in report.effects if effect.measure == measure)
    return f"{clear} clear effects"


def _effects_table(report: ScreenReport, measure: str) -> str:
    row = next(row for row in report.baseline if row.measure == measure)
    seeds = ", ".join(f"{value:.4f}" for value in row.by_seed.values())
    rows = [
        [
            effect.variant, f"{effect.estimate:+.4f}", f"{effect.low:+.4f} to {effect.high:+.4f}",
            f"{effect.low_all:+.4f} to {effect.high_all:+.4f}", f"{effect.p_corrected:.3g}",
            ", ".join(f"{value:+.4f}" for value in effect.by_seed.values()), str(effect.documents),
        ]
        for effect in report.of(measure)
    ]  # fmt: skip
    heads = ["variant", "effect", "interval", "for all comparisons", "corrected p", "by seed",
             "documents"]  # fmt: skip
    said = f"<p>Baseline by seed: {seeds or 'not measured'}; the gate wants {row.better}.</p>"
    return said + _table(heads, rows)


def _cost_table(report: ScreenReport) -> str:
    def shown(cost: VariantCost) -> list[str]:
        return [
            cost.variant, f"{cost.parameters:,}", f"× {cost.relative:.3f}",
            "–" if cost.train_seconds is None else f"{cost.train_seconds:,.1f} s",
            "–" if cost.gates_met is None else f"{cost.gates_met:.2f}",
        ]  # fmt: skip

    heads = ["variant", "parameters", "predicted cost", "measured training", "gates met, mean"]
    return _table(heads, [shown(cost) for cost in report.costs])


def _failures(failed: Sequence[RunReport]) -> str:
    rows = [
        [run.run, run.state.value, f"{failure.at:%Y-%m-%d %H:%M}", f"step {failure.step}",
         f"{failure.kind}: {failure.message}"]
        for run in failed
        for failure in run.failures
    ]  # fmt: skip
    return _table(["run", "now", "when", "where", "why"], rows) if rows else "<p>None.</p>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _text(x: float, y: float, text: str, tone: str = "", *, anchor: str = "start") -> str:
    return (
        f'<text class="{tone}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _line(start: float, end: float, y: float, tone: str) -> str:
    return f'<line class="{tone}" x1="{start:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
