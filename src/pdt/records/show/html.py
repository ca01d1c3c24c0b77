"""A document as one self-contained page: no request leaves it, and every text in it is escaped."""

import base64
import hashlib
from html import escape
from importlib import resources

from pdt.records.show.view import ShownLane, ShownRun, View
from pdt.teacher.answer import Dependency, PlanNode
from pdt.teacher.checks import RULES
from pdt.teacher.facts import Fact
from pdt.terms import FactRole


def render_page(view: View) -> str:
    """The whole page."""
    script, style = page_part("page.js"), page_part("page.css")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    document = view.document
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(document.article.title)} · {escape(document.record_id)}</title>
<style>{style}</style></head><body>
{render_body(view)}
<script>{script}</script></body></html>
"""


def render_body(view: View) -> str:
    """What is inside the page: for another page around it."""
    lanes = "".join(_lane(view, lane) for lane in view.lanes)
    return f"""{_head(view)}
{_checks(view)}
<div class="legend">{_LEGEND}</div>
<div class="board" style="--lanes: {len(view.lanes)}">{_source(view)}{lanes}</div>
{_dependencies(view)}{_facts(view)}"""


_LEGEND = (
    '<span><mark class="owner l0">owner quote</mark></span>'
    '<span><mark class="reference l0">reference quote</mark></span>'
    '<span><mark class="dependency_owner">dependency</mark></span>'
    '<span><mark class="coined">coined text</mark></span>'
    '<span><mark class="unreachable">chosen without the note it needs</mark></span>'
    '<span><span class="border"><i>7</i></span> block border</span>'
    "<span>Colours are owner lanes. Point at a fact to find it everywhere.</span>"
)


def page_part(name: str) -> str:
    """page.css or page.js."""
    return (resources.files("pdt.records.show") / name).read_text(encoding="utf-8")


def _head(view: View) -> str:
    document, teacher = view.document, view.document.teacher
    meta = [
        document.record_id,
        document.split,
        document.category,
        f"source {view.source_tokens:,} tokens",
        f"prompt {view.prompt_tokens:,} tokens",
        f"{len(document.inventory.facts)} facts",
        f"{len(document.answer.dependencies)} dependencies",
        f"taught by {teacher.name} {teacher.version}",
    ]
    return (
        f"<h1>{escape(document.article.title)}</h1>"
        f'<p class="meta">{escape(" · ".join(meta))}</p>'
        f'<p class="request">{escape(document.answer.request)}</p>'
    )


def _checks(view: View) -> str:
    if not view.failures:
        rules = "".join(
            f"<li><code>{name}</code> {escape(rule.sentence)}</li>" for name, rule in RULES.items()
        )
        title = f"✓ All {len(RULES)} rules hold"
        return _folded("good", title, rules)
    rows = "".join(
        f"<li><code>{escape(failure.rule)}</code> {escape(failure.where)}: "
        f"{escape(failure.measured)}; required: {escape(failure.required)}</li>"
        for failure in view.failures
    )
    return _folded("bad", f"✗ {len(view.failures)} failures", rows)


def _folded(kind: str, title: str, items: str) -> str:
    state = " open" if kind == "bad" else ""
    return (
        f'<details{state} class="card checks {kind}"><summary>{title}</summary>'
        f"<ul>{items}</ul></details>"
    )


def _colour(view: View, fact: str) -> str:
    lane = view.owner_lane.get(fact)
    return "" if lane is None else f"l{lane % 6}"


def _run(view: View, run: ShownRun) -> str:
    border = f'<span class="border"><i>{run.block}</i></span>' if run.block is not None else ""
    text = escape(run.text)
    for mark in run.marks:
        data = {
            "dependency_owner": "sends",
            "dependency_receiver": "receives",
            "coined": "coined",
            "unreachable": "unreachable",
        }.get(mark.kind, "fact")
        colour = _colour(view, mark.name) if data == "fact" else ""
        text = (
            f'<mark class="{mark.kind} {colour}" data-{data}="{escape(mark.name)}" '
            f'title="{escape(mark.kind.replace("_", " "))} {escape(mark.name)}">{text}</mark>'
        )
    return border + text


def _runs(view: View, runs: tuple[ShownRun, ...]) -> str:
    """Runs with a small fact label where each fact's quote ends."""
    parts = []
    for index, run in enumerate(runs):
        parts.append(_run(view, run))
        later = {mark for after in runs[index + 1 :] for mark in after.marks}
        for mark in run.marks:
            if mark not in later and mark.kind in ("owner", "reference", "source"):
                colour = _colour(view, mark.name)
                parts.append(f'<sup class="fact {colour}">{escape(mark.name)}</sup>')
    return "".join(parts)


def _source(view: View) -> str:
    parts = []
    for section in view.document.article.sections:
        if section.path:
            parts.append(f"<h3>{escape(' › '.join(section.path))}</h3>")
        for paragraph in section.paragraphs:
            names = escape(" ".join(paragraph.citation_ids))
            count = len(paragraph.citation_ids)
            note = f' <span class="cited" title="{names}">[{count} cited]</span>' if count else ""
            parts.append(f"<p>{_runs(view, view.source[paragraph.id])}{note}</p>")
    return f'<div class="card source"><h2>Source</h2>{"".join(parts)}</div>'


def _lane(view: View, lane: ShownLane) -> str:
    answer = view.document.answer
    nodes = answer.plans[lane.lane].nodes if lane.lane < len(answer.plans) else ()
    place = "not placed" if lane.position is None else f"read {_ORDINALS[lane.position]}"
    tokens = f"{len(lane.tokens.ids) - 1} tokens + EOS, {lane.tokens.blocks} blocks"
    plan = "".join(_node(view, index, node) for index, node in enumerate(nodes))
    text = ""
    for paragraph in lane.paragraphs:
        badge = "" if paragraph.node is None else f'<span class="node">{paragraph.node}</span>'
        text += f"<p>{badge}{_runs(view, paragraph.runs)}</p>"
    return (
        f'<div class="card lane o{lane.lane % 6}"><div class="lane-head">'
        f"<strong>Lane {lane.lane}</strong><span>{place}<br>{tokens}</span></div>"
        f'<ol class="plan">{plan}</ol>{text}</div>'
    )


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def _node(view: View, index: int, node: PlanNode) -> str:
    chips = "".join(_chip(view, fact, "owned") for fact in node.owned_facts)
    chips += "".join(_chip(view, fact, "reference") for fact in node.reference_facts)
    chips += "".join(
        f'<span class="chip dependency">receives {escape(name)}</span>'
        for name in node.dependencies
    )
    return f'<li><span class="node">{index}</span>{escape(node.objective)}<br>{chips}</li>'


def _chip(view: View, fact: str, kind: str) -> str:
    name = escape(fact)
    return f'<span class="chip {kind} {_colour(view, fact)}" data-fact="{name}">{name}</span>'


def _dependencies(view: View) -> str:
    listed = view.document.answer.dependencies
    if not listed:
        return '<section class="below card"><h2>Dependencies</h2>None; a valid record.</section>'
    rows = "".join(_dependency(view, dependency) for dependency in listed)
    return (
        '<section class="below card"><h2>Dependencies</h2><table><tr><th>id<th>owner quote'
        "<th>receiver quote<th>refers to<th>note block → receiver block<th>bits</tr>"
        f"{rows}</table></section>"
    )


def _dependency(view: View, dependency: Dependency) -> str:
    place, coined = view.dependencies.get(dependency.id), dependency.coined
    label = dependency.id + (f" · {coined.entropy_bits:g} bits" if coined else "")
    subject = f"coined “{coined.text}”" if coined else f"fact {dependency.fact_id or 'none'}"
    blocks = f"{place.owner_block} → {place.first_block}" if place else "not placed"
    cells = [
        dependency.id,
        *(
            f"lane {end.lane}, node {end.node}: {end.quote.text}"
            for end in (dependency.owner, dependency.receiver)
        ),
        subject,
        blocks,
        f"{coined.entropy_bits:g}" if coined else "",
    ]
    name = escape(dependency.id)
    row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr data-arrow="{name}" data-label="{escape(label)}">{row}</tr>'


def _facts(view: View) -> str:
    count = len(view.document.answer.sections)
    heads = "".join(f"<th>lane {lane}" for lane in range(count))
    rows = "".join(_fact(view, fact, count) for fact in view.document.inventory.facts)
    return (
        '<section class="below card"><h2>Facts</h2><table><tr><th>fact<th>statement'
        f"<th>hard negative{heads}<th>cited</tr>{rows}</table></section>"
    )


def _fact(view: View, fact: Fact, count: int) -> str:
    negative = fact.hard_negative
    false = escape(negative.statement).replace(
        escape(negative.replacement), f"<b>{escape(negative.replacement)}</b>", 1
    )
    roles = next((r.lanes for r in view.document.answer.roles if r.fact_id == fact.id), ())
    cells = ""
    for lane in range(count):
        role = roles[lane].role if lane < len(roles) else None
        if role in (FactRole.OWNER, FactRole.REFERENCE):
            kind = "owned" if role is FactRole.OWNER else "reference"
            cells += (
                f'<td class="role"><span class="chip {kind} {_colour(view, fact.id)}">{role}</span>'
            )
        else:
            cells += "<td>"
    return (
        f"<tr><td>{_chip(view, fact.id, 'owned')}<td>{escape(fact.statement)}"
        f'<td class="negative">{false} <span class="cited">({negative.alters})</span>'
        f'{cells}<td class="cited">{escape(" ".join(fact.citation_ids))}</tr>'
    )
