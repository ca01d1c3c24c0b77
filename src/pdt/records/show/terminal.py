"""A document in the terminal: sections in reading order, quotes in the colour of their owner."""

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pdt.records.show.view import ShownLane, ShownRun, View
from pdt.teacher.checks import RULES

COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")


def render(console: Console, view: View) -> None:
    """Print the whole document: request, sections with plans, facts, dependencies, checks."""
    document = view.document
    head = f"{document.record_id} · {document.split} · {document.category} · "
    head += f"source {view.source_tokens:,} tokens, prompt {view.prompt_tokens:,}"
    console.print(Panel(Text(document.answer.request), title=Text(document.article.title)))
    console.print(Text(head, style="dim"))
    console.print(_source(view))
    for lane in view.lanes:
        console.print(_lane(view, lane))
    console.print(_facts(view))
    if document.answer.dependencies:
        console.print(_dependencies(view))
    console.print(_checks(view))


def _colour(lane: int | None) -> str:
    return "white" if lane is None else COLOURS[lane % len(COLOURS)]


def _source(view: View) -> Panel:
    parts: list[RenderableType] = []
    for section in view.document.article.sections:
        if section.path:
            parts.append(Text(" › ".join(section.path), style="bold"))
        for paragraph in section.paragraphs:
            text = Text()
            for run in view.source[paragraph.id]:
                owners = [_colour(view.owner_lane.get(mark.name)) for mark in run.marks]
                text.append(run.text, style=owners[0] if owners else "")
            parts += [text, Text()]
    return Panel(Group(*parts[:-1]), title="source", border_style="dim")


def _lane(view: View, lane: ShownLane) -> Panel:
    plan = view.document.answer.plans[lane.lane]
    parts: list[RenderableType] = []
    for paragraph in lane.paragraphs:
        if paragraph.node is not None:
            node = plan.nodes[paragraph.node]
            parts.append(Text(f"node {paragraph.node}: {node.objective}", style="dim italic"))
        text = Text()
        for run in paragraph.runs:
            if run.block is not None:
                text.append(f"⟨{run.block}⟩", style="dim")
            text.append(run.text, style=_style(view, run))
        parts += [text, Text()]
    position = "unplaced" if lane.position is None else f"read {lane.position + 1}."
    title = f"lane {lane.lane} · {position} · {len(lane.tokens.ids) - 1} tokens + EOS"
    title += f" · {lane.tokens.blocks} blocks"
    return Panel(Group(*parts[:-1]), title=title, border_style=_colour(lane.lane))


def _style(view: View, run: ShownRun) -> str:
    style = ""
    for mark in run.marks:
        if mark.kind in ("owner", "reference"):
            weight = "bold" if mark.kind == "owner" else "italic underline"
            style += f" {weight} {_colour(view.owner_lane.get(mark.name))}"
        elif mark.kind == "coined":
            style += " reverse"
        elif mark.kind == "unreachable":
            style += " strike"
    return style.strip()


def _facts(view: View) -> Table:
    table = Table(title="facts", title_justify="left", expand=True)
    for name in ("fact", "statement", "owner", "references", "hard negative"):
        table.add_column(name)
    roles = {r.fact_id: r.lanes for r in view.document.answer.roles}
    for fact in view.document.inventory.facts:
        owner = view.owner_lane.get(fact.id)
        lanes = roles.get(fact.id, ())
        mentions = [str(k) for k, role in enumerate(lanes) if role.role == "reference"]
        table.add_row(
            Text(fact.id, style=_colour(owner)),
            Text(fact.statement),
            "none" if owner is None else f"lane {owner}",
            ", ".join(mentions),
            Text(fact.hard_negative.statement, style="dim"),
        )
    return table


def _dependencies(view: View) -> Table:
    table = Table(title="dependencies", title_justify="left", expand=True)
    for name in ("id", "owner", "receiver", "blocks", "bits"):
        table.add_column(name)
    for dependency in view.document.answer.dependencies:
        place = view.dependencies.get(dependency.id)
        table.add_row(
            Text(dependency.id),
            Text(f"lane {dependency.owner.lane}: {dependency.owner.quote.text}"),
            Text(f"lane {dependency.receiver.lane}: {dependency.receiver.quote.text}"),
            f"{place.owner_block} → {place.first_block}" if place else "not placed",
            f"{dependency.coined.entropy_bits:g}" if dependency.coined else "",
        )
    return table


def _checks(view: View) -> RenderableType:
    if not view.failures:
        return Text(f"✓ all {len(RULES)} rules hold", style="bold green")
    table = Table(title=f"{len(view.failures)} failures", title_justify="left", expand=True)
    for name in ("rule", "where", "measured", "required"):
        table.add_column(name)
    for failure in view.failures:
        table.add_row(
            Text(failure.rule, style="bold red"),
            Text(failure.where),
            Text(failure.measured),
            Text(failure.required),
        )
    return table
