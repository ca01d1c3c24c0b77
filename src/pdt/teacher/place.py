"""From a draft to the contract: every quote is found in its text, or reported.

Paper: §4.2.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from pdt.sources.article import Article
from pdt.sources.quote import Quote
from pdt.teacher.answer import (
    Answer,
    Dependency,
    DependencyEnd,
    FactRoles,
    LaneRole,
    Plan,
    PlanNode,
    TargetSection,
)
from pdt.teacher.checks import Failures
from pdt.teacher.checks.rules import shorten
from pdt.teacher.drafts import AnswerDraft, DependencyDraft, FactDraft, FactsDraft, LaneDraft
from pdt.teacher.facts import Fact, FactInventory, HardNegative
from pdt.teacher.passage import find_passage, longest_part
from pdt.terms import FactRole


def place_facts(draft: FactsDraft, article: Article, found: Failures) -> FactInventory | None:
    """The inventory in source order; None when a fact could not be placed."""
    order = {paragraph.id: n for n, (_, paragraph) in enumerate(article.paragraphs())}
    texts = {paragraph.id: paragraph.text for _, paragraph in article.paragraphs()}
    facts = [fact for fact in (_fact(one, texts, found) for one in draft.facts) if fact]
    facts.sort(key=lambda fact: (order[fact.paragraph_id], fact.quote.start))
    if len(facts) < len(draft.facts):
        return None
    return FactInventory(bundle_id=article.bundle_id, facts=tuple(facts))


def _fact(draft: FactDraft, texts: dict[str, str], found: Failures) -> Fact | None:
    where = {"fact": draft.id, "paragraph": draft.paragraph_id}
    text = texts.get(draft.paragraph_id)
    if text is None:
        found.add("fact_paragraph", "no such paragraph", "a paragraph id of the source", **where)
        return None
    quote = find_passage(text, draft.quote)
    if quote is None:
        elsewhere = [id for id, other in texts.items() if find_passage(other, draft.quote)]
        hint = (
            f"it stands in {elsewhere[0]}"
            if elsewhere
            else f"the longest part that is: {shorten(longest_part(text, draft.quote))}"
        )
        measured = f"{shorten(draft.quote)} is not in the paragraph; {hint}"
        found.add("fact_quote", measured, "an exact copy of the paragraph's words", **where)
        return None
    try:
        return Fact(
            id=draft.id,
            statement=draft.statement.strip(),
            paragraph_id=draft.paragraph_id,
            quote=quote,
            citation_ids=tuple(draft.citation_ids),
            hard_negative=HardNegative(
                statement=draft.hard_negative.statement.strip(),
                alters=draft.hard_negative.alters,
                original=draft.hard_negative.original.strip(),
                replacement=draft.hard_negative.replacement.strip(),
            ),
        )
    except ValidationError as error:
        _add_schema(error, found, **where)
        return None


def place_answer(
    draft: AnswerDraft, inventory: FactInventory, found: Failures, *, lanes: int
) -> Answer | None:
    """The answer with every quote that could be placed; None when it has not its lanes."""
    if len(draft.lanes) != lanes:
        found.add("lane_count", f"{len(draft.lanes)} sections", f"{lanes} of them")
        return None
    try:
        sections = tuple(
            TargetSection(paragraphs=tuple(p.strip() for n in lane.nodes for p in n.paragraphs))
            for lane in draft.lanes
        )
        dependencies = _dependencies(draft, sections, found)
        return Answer(
            request=draft.request.strip(),
            plans=tuple(_plan(lane, k, dependencies) for k, lane in enumerate(draft.lanes)),
            sections=sections,
            lane_at_position=tuple(draft.presentation_order),
            roles=_roles(draft, sections, inventory, found),
            dependencies=dependencies,
        )
    except ValidationError as error:
        _add_schema(error, found)
        return None


def _plan(lane: LaneDraft, k: int, dependencies: Sequence[Dependency]) -> Plan:
    nodes, first = [], 0
    for index, node in enumerate(lane.nodes):
        count = len(node.paragraphs)
        nodes.append(
            PlanNode(
                objective=node.objective.strip(),
                owned_facts=tuple(evidence.fact_id for evidence in node.owned_facts),
                reference_facts=tuple(evidence.fact_id for evidence in node.reference_facts),
                dependencies=tuple(
                    d.id for d in dependencies if (d.receiver.lane, d.receiver.node) == (k, index)
                ),
                target_paragraphs=tuple(range(first, first + count)),
            )
        )
        first += count
    return Plan(nodes=tuple(nodes))


def _roles(
    draft: AnswerDraft,
    sections: Sequence[TargetSection],
    inventory: FactInventory,
    found: Failures,
) -> tuple[FactRoles, ...]:
    """Who tells a fact is its OWNER, who quotes it otherwise a REFERENCE, all others ABSENT."""
    said: dict[tuple[str, int], tuple[FactRole, list[Quote]]] = {}
    for k, lane in enumerate(draft.lanes):
        for n, node in enumerate(lane.nodes):
            near = _node_spans(lane, sections[k], n)
            for role, listed in (
                (FactRole.OWNER, node.owned_facts),
                (FactRole.REFERENCE, node.reference_facts),
            ):
                for evidence in listed:
                    entry = said.setdefault((evidence.fact_id, k), (role, []))
                    for passage in evidence.quotes:
                        quote = find_passage(sections[k].text, passage, near=near)
                        if quote is None:
                            where: dict[str, int | str | None] = {"lane": k, "node": n}
                            _add_missing(
                                "role_quote", passage, found, fact=evidence.fact_id, **where
                            )
                        elif quote not in entry[1]:
                            entry[1].append(quote)
    return tuple(
        FactRoles(
            fact_id=fact.id,
            lanes=tuple(_role(said.get((fact.id, k))) for k in range(len(sections))),
        )
        for fact in inventory.facts
    )


def _role(entry: tuple[FactRole, list[Quote]] | None) -> LaneRole:
    if entry is None or (entry[0] is FactRole.REFERENCE and not entry[1]):
        return LaneRole(role=FactRole.ABSENT)
    return LaneRole(role=entry[0], quotes=tuple(sorted(entry[1], key=lambda quote: quote.start)))


def _dependencies(
    draft: AnswerDraft, sections: Sequence[TargetSection], found: Failures
) -> tuple[Dependency, ...]:
    placed = []
    for number, link in enumerate(draft.dependencies, start=1):
        name = f"d{number}"
        owner = _end(draft, sections, link, name, found, receiver=False)
        receiver = _end(draft, sections, link, name, found, receiver=True)
        if owner and receiver:
            placed.append(Dependency(id=name, owner=owner, receiver=receiver, fact_id=link.fact_id))
    return tuple(placed)


def _end(
    draft: AnswerDraft,
    sections: Sequence[TargetSection],
    link: DependencyDraft,
    name: str,
    found: Failures,
    *,
    receiver: bool,
) -> DependencyEnd | None:
    lane, node, passage = (
        (link.receiver_lane, link.receiver_node, link.receiver_quote)
        if receiver
        else (link.owner_lane, link.owner_node, link.owner_quote)
    )
    if not (0 <= lane < len(sections) and 0 <= node < len(draft.lanes[lane].nodes)):
        found.add("dependency_ends", f"lane {lane}, node {node}", "existing ones", dependency=name)
        return None
    near = _node_spans(draft.lanes[lane], sections[lane], node)
    quote = find_passage(sections[lane].text, passage, near=near)
    if quote is None:
        _add_missing("dependency_quote", passage, found, dependency=name, lane=lane, node=node)
        return None
    return DependencyEnd(lane=lane, node=node, quote=quote)


def _node_spans(lane: LaneDraft, section: TargetSection, node: int) -> Sequence[tuple[int, int]]:
    first = sum(len(before.paragraphs) for before in lane.nodes[:node])
    return section.spans[first : first + len(lane.nodes[node].paragraphs)]


def _add_missing(rule: str, passage: str, found: Failures, **where: int | str | None) -> None:
    found.add(
        rule, f"{shorten(passage)} is not in the section", "an exact copy of its words", **where
    )


def _add_schema(error: ValidationError, found: Failures, **where: int | str | None) -> None:
    for problem in error.errors(include_url=False)[:10]:
        path = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        shown = shorten(str(problem["input"]))
        found.add("reply_schema", f"{path}: {message}; got {shown}", "the schema", **where)
