"""One joint answer from a division: plans, sections, roles, and house style as dependencies.

Paper: §4.2, Stage B.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdt.config.teacher import ExtractiveConfig
from pdt.extractive.claims import Claim
from pdt.extractive.divide import Division
from pdt.extractive.style import DrawnStyle, draw_style, styles_for, write_style
from pdt.extractive.tell import ToldSection, objective_of, tell_lane
from pdt.sources.article import Article
from pdt.sources.quote import quote_at
from pdt.teacher.answer import (
    Answer,
    CoinedChoice,
    Dependency,
    DependencyEnd,
    FactRoles,
    LaneRole,
    Plan,
    PlanNode,
    TargetSection,
)
from pdt.teacher.facts import FactInventory
from pdt.terms import FactRole
from pdt.tokenizer import StudentTokenizer

BLOCK = 32


@dataclass(frozen=True)
class Draft:
    """An answer before its checks, with what was drawn for it."""

    answer: Answer
    division: str
    styles: tuple[str, ...]


@dataclass(frozen=True)
class _Link:
    """A style that one position shows and a later one follows; each end is node and place."""

    drawn: DrawnStyle
    owner: int
    receiver: int


def draft_answer(
    stream: random.Random,
    article: Article,
    inventory: FactInventory,
    claims: Sequence[Claim],
    division: Division,
    request: str,
    dials: ExtractiveConfig,
    tokenizer: StudentTokenizer,
) -> Draft:
    """Everything of Stage B, in the order in which the reader gets it and then by lane."""
    sections = [
        tell_lane(
            stream,
            lane,
            claims,
            pronoun_share=dials.pronoun_share,
            connective_share=dials.connective_share,
        )
        for lane in division.lanes
    ]
    objectives = [[objective_of(node, claims) for node in lane] for lane in division.lanes]
    links: list[_Link] = []
    if stream.random() < dials.style_share:
        hidden = {
            "source": article.text,
            "request": request,
            "facts": " | ".join(
                f"{f.statement} | {f.hard_negative.statement}" for f in inventory.facts
            ),
            "plans": " | ".join(text for lane in objectives for text in lane),
        }
        links = _write_styles(stream, sections, claims, hidden, dials, tokenizer)
    lane_at_position = stream.sample(range(len(sections)), len(sections))
    answer = _answer(inventory, request, division, sections, objectives, links, lane_at_position)
    return Draft(answer, division.name, tuple(sorted({link.drawn.style.name for link in links})))


def _write_styles(
    stream: random.Random,
    sections: Sequence[ToldSection],
    claims: Sequence[Claim],
    hidden: Mapping[str, str],
    dials: ExtractiveConfig,
    tokenizer: StudentTokenizer,
) -> list[_Link]:
    """House styles: the first section shows each early, the others follow where they can."""
    groups = len({claim.group for claim in claims})
    wanted = stream.randint(1, dials.styles)
    links: list[_Link] = []
    for style in styles_for(stream, groups):
        if len({link.drawn.style.name for link in links}) == wanted:
            break
        if any(link.drawn.style.cue == style.cue for link in links):
            continue
        drawn = draw_style(stream, style, dials.style_bits, hidden)
        if drawn is not None:
            links += _link(stream, sections, claims, drawn, tokenizer)
    return links


def _link(
    stream: random.Random,
    sections: Sequence[ToldSection],
    claims: Sequence[Claim],
    drawn: DrawnStyle,
    tokenizer: StudentTokenizer,
) -> list[_Link]:
    """The first section's first sentence that can carry the style, and who follows it."""
    owner = sections[0]
    for number, node in enumerate(owner.nodes):
        for place, sentence in enumerate(node):
            before = sentence.text
            if not write_style(owner, number, place, drawn, claims[sentence.claim]):
                continue
            shown = _end_block(owner, drawn, tokenizer)
            links = [
                _Link(drawn, 0, receiver)
                for receiver in range(1, len(sections))
                if shown is not None
                and _follow(stream, sections[receiver], claims, drawn, shown, tokenizer)
            ]
            if not links:
                sentence.text = before
                sentence.marks.pop()
            return links
    return []


def _end_block(section: ToldSection, drawn: DrawnStyle, tokenizer: StudentTokenizer) -> int | None:
    """The block in which the owner's words are complete, if its note is published."""
    spans = tokenizer.encode(section.text).spans
    _, end = _characters(section, drawn)
    last = max(n for n, (start, _) in enumerate(spans) if start < end)
    return last // BLOCK if (last // BLOCK + 1) * BLOCK <= len(spans) else None


def _follow(
    stream: random.Random,
    section: ToldSection,
    claims: Sequence[Claim],
    drawn: DrawnStyle,
    shown: int,
    tokenizer: StudentTokenizer,
) -> bool:
    """In one sentence of a later block than the note's; nothing is changed where none fits."""
    places = [(n, p) for n, node in enumerate(section.nodes) for p in range(len(node))]
    stream.shuffle(places)
    for number, place in places:
        sentence = section.nodes[number][place]
        before = sentence.text
        if not write_style(section, number, place, drawn, claims[sentence.claim]):
            continue
        start, _ = _characters(section, drawn)
        spans = tokenizer.encode(section.text).spans
        first = next(n for n, (_, end) in enumerate(spans) if end > start)
        # A block's first token is chosen before the notes of the block before it are read (§5.2).
        if first // BLOCK > shown and (first % BLOCK or first // BLOCK > shown + 1):
            return True
        sentence.text = before
        sentence.marks.pop()
    return False


def _characters(section: ToldSection, drawn: DrawnStyle) -> tuple[int, int]:
    for _, start, sentence in section.placed():
        for mark in sentence.marks:
            if mark.style == drawn.style.name:
                return start + mark.start, start + mark.end
    raise LookupError(drawn.style.name)


def _answer(
    inventory: FactInventory,
    request: str,
    division: Division,
    by_position: Sequence[ToldSection],
    objectives: Sequence[Sequence[str]],
    links: Sequence[_Link],
    lane_at_position: Sequence[int],
) -> Answer:
    position_of = [lane_at_position.index(lane) for lane in range(len(by_position))]
    sections = [
        TargetSection(paragraphs=tuple(by_position[position].paragraphs))
        for position in position_of
    ]
    dependencies = tuple(
        _dependency(f"d{number}", link, by_position, lane_at_position)
        for number, link in enumerate(links, start=1)
    )
    ids = [fact.id for fact in inventory.facts]
    plans = tuple(
        Plan(
            nodes=tuple(
                PlanNode(
                    objective=objectives[position][number],
                    owned_facts=tuple(ids[index] for index in node),
                    dependencies=tuple(
                        d.id
                        for d in dependencies
                        if (d.receiver.lane, d.receiver.node) == (lane, number)
                    ),
                    target_paragraphs=(number,),
                )
                for number, node in enumerate(division.lanes[position])
            )
        )
        for lane, position in enumerate(position_of)
    )
    return Answer(
        request=request,
        plans=plans,
        sections=tuple(sections),
        lane_at_position=tuple(lane_at_position),
        roles=_roles(ids, [by_position[position] for position in position_of]),
        dependencies=dependencies,
    )


def _roles(ids: Sequence[str], sections: Sequence[ToldSection]) -> tuple[FactRoles, ...]:
    told = {
        sentence.claim: (lane, quote_at(section.text, start, start + len(sentence.text)))
        for lane, section in enumerate(sections)
        for _, start, sentence in section.placed()
    }
    absent = LaneRole(role=FactRole.ABSENT)
    return tuple(
        FactRoles(
            fact_id=name,
            lanes=tuple(
                LaneRole(role=FactRole.OWNER, quotes=(told[place][1],))
                if told[place][0] == lane
                else absent
                for lane in range(len(sections))
            ),
        )
        for place, name in enumerate(ids)
    )


def _dependency(
    name: str, link: _Link, by_position: Sequence[ToldSection], lane_at_position: Sequence[int]
) -> Dependency:
    def end(position: int) -> DependencyEnd:
        section = by_position[position]
        start, stop = _characters(section, link.drawn)
        node = next(
            number
            for number, first, sentence in section.placed()
            if first <= start < first + len(sentence.text)
        )
        return DependencyEnd(
            lane=lane_at_position[position], node=node, quote=quote_at(section.text, start, stop)
        )

    return Dependency(
        id=name,
        owner=end(link.owner),
        receiver=end(link.receiver),
        coined=CoinedChoice(
            choice_id=link.drawn.style.name,
            text=link.drawn.text,
            entropy_bits=link.drawn.bits,
            alternatives=link.drawn.pool,
        ),
    )
