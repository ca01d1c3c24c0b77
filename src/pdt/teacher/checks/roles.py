"""Ownership: who writes which fact, who may mention it, and where. Paper: §2.1, §4.2."""

from pdt.sources.quote import Quote
from pdt.teacher.answer import Answer, FactRoles, LaneRole
from pdt.teacher.checks.facts import false_forms, fold
from pdt.teacher.checks.rules import Failures, shorten
from pdt.teacher.document import TaughtDocument
from pdt.teacher.facts import Fact
from pdt.terms import FactRole

EVIDENCE_WORDS = 4
"""A quote of fewer words (a year, a name) may honestly recur in a lane that lacks the fact."""


def check_roles(document: TaughtDocument, found: Failures) -> None:
    answer = document.answer
    entries: dict[str, list[FactRoles]] = {}
    for roles in answer.roles:
        entries.setdefault(roles.fact_id, []).append(roles)
    folded = [fold(section.text) for section in answer.sections]
    for fact in document.inventory.facts:
        mine = entries.get(fact.id, [])
        if len(mine) != 1 or len(mine[0].lanes) != len(answer.sections):
            found.add(
                "roles_complete",
                f"{len(mine)} entries with {[len(roles.lanes) for roles in mine]} roles",
                f"one entry with {len(answer.sections)} roles",
                fact=fact.id,
            )
            continue
        lanes = mine[0].lanes
        _check_owner(answer, fact, lanes, found)
        for lane, role in enumerate(lanes):
            _check_quotes(answer, fact, lane, role, found)
            if role.role is FactRole.REFERENCE and not _nodes(answer, lane, fact.id, owned=False):
                found.add(
                    "reference_permitted", "no node", "a permitting node", fact=fact.id, lane=lane
                )
        _check_absence(fact, lanes, folded, found)
    _check_negatives(document, entries, folded, found)


def _check_owner(answer: Answer, fact: Fact, lanes: tuple[LaneRole, ...], found: Failures) -> None:
    owners = [lane for lane, role in enumerate(lanes) if role.role is FactRole.OWNER]
    if len(owners) != 1:
        found.add("one_owner", f"owner lanes {owners}", "exactly one", fact=fact.id)
    routed = [
        (lane, node)
        for lane in range(len(answer.plans))
        for node in _nodes(answer, lane, fact.id, owned=True)
    ]
    if [lane for lane, _ in routed] != owners:
        found.add(
            "owner_routed",
            f"owned by (lane, node) {routed}",
            f"one node of lane {owners}",
            fact=fact.id,
        )
    for lane, _ in routed:
        if permitting := _nodes(answer, lane, fact.id, owned=False):
            found.add(
                "reference_permitted",
                f"nodes {permitting} permit a fact of their own lane",
                "facts of other lanes",
                fact=fact.id,
                lane=lane,
            )


def _check_quotes(answer: Answer, fact: Fact, lane: int, role: LaneRole, found: Failures) -> None:
    where: dict[str, int | str | None] = {"fact": fact.id, "lane": lane}
    if bool(role.quotes) is (role.role is FactRole.ABSENT):
        wanted = "none" if role.role is FactRole.ABSENT else "at least one"
        found.add("role_has_quote", f"{len(role.quotes)} quotes for {role.role}", wanted, **where)
    section = answer.sections[lane]
    nodes = [
        *_nodes(answer, lane, fact.id, owned=True),
        *_nodes(answer, lane, fact.id, owned=False),
    ]
    for quote in role.quotes:
        place = {**where, "start": quote.start, "end": quote.end}
        if not quote.matches(section.text):
            there = shorten(section.text[quote.start : quote.end])
            found.add("role_quote", f"the section reads {there}", shorten(quote.text), **place)
        elif nodes and not any(in_target(answer, lane, node, quote) for node in nodes):
            found.add("role_quote_in_target", "elsewhere", f"targets of nodes {nodes}", **place)


def _check_absence(
    fact: Fact, lanes: tuple[LaneRole, ...], folded: list[str], found: Failures
) -> None:
    quotes = [quote.text for role in lanes for quote in role.quotes]
    evidence = {fold(text) for text in (fact.statement, fact.quote.text, *quotes)}
    evidence = {text for text in evidence if len(text.split()) >= EVIDENCE_WORDS}
    for lane, role in enumerate(lanes):
        if role.role is not FactRole.ABSENT:
            continue
        for text in sorted(evidence):
            if text in folded[lane]:
                found.add(
                    "absent_stays_absent",
                    shorten(text),
                    "not in this lane",
                    fact=fact.id,
                    lane=lane,
                )


def _check_negatives(
    document: TaughtDocument,
    entries: dict[str, list[FactRoles]],
    folded: list[str],
    found: Failures,
) -> None:
    plans = fold(
        " | ".join(node.objective for plan in document.answer.plans for node in plan.nodes)
    )
    request = fold(document.answer.request)
    for fact in document.inventory.facts:
        quotes = [
            quote.text
            for roles in entries.get(fact.id, [])
            for lane in roles.lanes
            for quote in lane.quotes
        ]
        for false in false_forms(fact, [fact.quote.text, *quotes]):
            text = fold(false)
            for lane, section in enumerate(folded):
                if text in section:
                    found.add("negative_absent", shorten(false), "absent", fact=fact.id, lane=lane)
            if text in plans or text in request:
                found.add("negative_absent", shorten(false), "not in plan or request", fact=fact.id)


def _nodes(answer: Answer, lane: int, fact: str, *, owned: bool) -> list[int]:
    if lane >= len(answer.plans):
        return []
    return [
        index
        for index, node in enumerate(answer.plans[lane].nodes)
        for named in (node.owned_facts if owned else node.reference_facts)
        if named == fact
    ]


def in_target(answer: Answer, lane: int, node: int, quote: Quote) -> bool:
    """Does the quote overlap a target paragraph of that node?"""
    spans = answer.sections[lane].spans
    return any(
        paragraph < len(spans)
        and quote.start < spans[paragraph][1]
        and quote.end > spans[paragraph][0]
        for paragraph in answer.plans[lane].nodes[node].target_paragraphs
    )
