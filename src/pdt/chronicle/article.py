"""The source: one world told as an encyclopedia article with headings and citations.

The article is arranged by phase, by theme or by party, drawn apart from any request, so its
headings do not give a request's decomposition away.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pdt.chronicle.dials import Dials
from pdt.chronicle.essays import (
    BODY_NOTES,
    CELL_PHASES,
    CELL_THEMES,
    COUNTRY,
    LATER_VIEWS,
    LEADS,
    MEMORY,
    NEUTRAL_HEADINGS,
    PARTIES_NAMED,
    PARTY_CLOSINGS,
    PARTY_INTRODUCTIONS,
    PARTY_THEMES,
    PHASE_HEADINGS,
    THEME_HEADINGS,
)
from pdt.chronicle.meter import Meter
from pdt.chronicle.phrasing import (
    Outcomes,
    Remarks,
    Sentence,
    Topics,
    capital,
    cue_first,
    tell,
    tell_from_cue,
)
from pdt.chronicle.works import Work, draw_works
from pdt.chronicle.world import World, WorldFact, draw_world
from pdt.terms import Split

AXES = ("phase", "theme", "party")
Told = TypeVar("Told")


@dataclass
class DraftParagraph:
    """Sentences, and after each of them the works that are cited for it."""

    sentences: list[Sentence]
    cited: dict[int, list[Work]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


DraftSection = tuple[str | None, list[DraftParagraph]]
"""A heading (none for the lead) and what stands under it."""


@dataclass
class ArticleDraft:
    """An article before it becomes markup."""

    title: str
    sections: list[DraftSection]
    works: tuple[Work, ...]

    @property
    def told(self) -> dict[str, Sentence]:
        """How each fact is told, in the order of the text."""
        return {
            sentence.fact: sentence
            for _, paragraphs in self.sections
            for paragraph in paragraphs
            for sentence in paragraph.sentences
            if sentence.fact is not None
        }

    @property
    def text(self) -> str:
        parts = [f"# {self.title}"]
        for heading, paragraphs in self.sections:
            parts += [f"## {heading}"] if heading else []
            parts += [paragraph.text for paragraph in paragraphs]
        return "\n\n".join(parts)


def key_of(fact: WorldFact, axis: str) -> int:
    """Where a fact falls on one axis: its phase, its theme, or its party."""
    if axis == "phase":
        return int(fact.deed.phase)
    return int(fact.deed.theme) if axis == "theme" else fact.party


def even_chunks(facts: Sequence[Told], most: int) -> list[Sequence[Told]]:
    """Consecutive parts of at most `most`, as equal in size as can be."""
    parts = -(-len(facts) // most)
    return [facts[len(facts) * i // parts : len(facts) * (i + 1) // parts] for i in range(parts)]


def draft_article(
    stream: random.Random, world: World, split: Split, dials: Dials, meter: Meter
) -> ArticleDraft:
    """The world as an article whose length is within the dials."""
    narrate = _Narrator(stream, world, split, dials)
    sections: list[DraftSection] = [(None, [narrate.lead()])]
    if dials.detail == 2:
        sections.append(("The country", narrate.essay(COUNTRY)))
        sections.append(("The three parties", narrate.parties()))
    sections += narrate.body()
    if dials.detail == 2:
        sections.append(("Memory", narrate.essay(MEMORY)))
        sections.append(("Sources and later views", narrate.essay(LATER_VIEWS)))
    if dials.other_facts or dials.asides:
        sections = _among_others(stream, world, sections, split, dials)
    works = draw_works(stream, world, 20 if dials.detail == 2 else stream.randrange(2, 5))
    draft = ArticleDraft(world.title, sections, works)
    _fit(stream, draft, world, dials, meter)
    _cite(stream, draft)
    return draft


def _among_others(
    stream: random.Random,
    world: World,
    sections: list[DraftSection],
    split: Split,
    dials: Dials,
) -> list[DraftSection]:
    """The article with paragraphs that no request asks about: of another event, and of none."""
    wanted = stream.randrange(dials.other_facts + 1)
    if wanted:
        other = draw_world(f"beside {world.title}", stream.randrange(1 << 30), split, dials)
        narrate = _Narrator(stream, other, split, dials)
        told = [
            Sentence(narrate.fact(fact, set(), short=False)[0].text)
            for fact in stream.sample(other.facts, min(wanted, len(other.facts)))
        ]
        chunks = [DraftParagraph([narrate.lead().sentences[0]])]
        chunks += [DraftParagraph(list(chunk)) for chunk in even_chunks(told, 3)]
        heading = capital(other.event)
        sections.insert(stream.randrange(1, len(sections) + 1), (heading, chunks))
    for _ in range(stream.randrange(dials.asides + 1)):
        texts = stream.sample((*COUNTRY[4:9], *MEMORY[1:], *LATER_VIEWS[1:]), 2)
        _, paragraphs = sections[stream.randrange(len(sections))]
        place = stream.randrange(1, len(paragraphs) + 1)
        paragraphs.insert(place, DraftParagraph([Sentence(text) for text in texts]))
    return sections


class _Narrator:
    """Writes the parts of one article."""

    def __init__(self, stream: random.Random, world: World, split: Split, dials: Dials) -> None:
        self.stream, self.world, self.split, self.dials = stream, world, split, dials
        self.topics = Topics(stream, world)
        self.results = Outcomes(stream)

    def lead(self) -> DraftParagraph:
        world = self.world
        first = self.stream.choice(LEADS).format(
            Event=capital(world.event), began=world.began, ended=world.ended
        )
        a, b, c = (party.full for party in world.parties)
        second = self.stream.choice(PARTIES_NAMED).format(a=a, b=b, c=c)
        texts = [first, world.category.opening, second] if self.dials.detail else [first, second]
        return DraftParagraph([Sentence(text) for text in texts])

    def parties(self) -> list[DraftParagraph]:
        closings = self.stream.sample(PARTY_CLOSINGS, 3)
        return [
            DraftParagraph(
                [
                    Sentence(opening.format(party=party.full, Party=capital(party.full))),
                    *map(Sentence, BODY_NOTES[party.body]),
                    Sentence(closing),
                ]
            )
            for party, opening, closing in zip(
                self.world.parties, PARTY_INTRODUCTIONS, closings, strict=True
            )
        ]

    def essay(self, texts: Sequence[str]) -> list[DraftParagraph]:
        """A connected passage of two paragraphs, without facts of its own."""
        a, b, c = (party.place for party in self.world.parties)
        told = [
            Sentence(text.format(event=self.world.event, place=self.world.place, a=a, b=b, c=c))
            for text in texts
        ]
        half = (len(told) + 1) // 2
        return [DraftParagraph(told[:half]), DraftParagraph(told[half:])]

    def body(self) -> list[DraftSection]:
        axis = self.stream.choice(AXES)
        if self.dials.detail == 2:
            second = self.stream.choice([other for other in AXES if other != axis])
            return self._cells(axis, second)
        groups = self._groups(self.world.facts, axis)
        sections: list[DraftSection] = [
            (self._heading(axis, key), self._paragraphs(facts, (axis,))) for key, facts in groups
        ]
        if self.dials.detail == 0 and self.stream.random() < 0.3 and len(sections) > 1:
            # Two groups under one heading: the number of headings says nothing about a split.
            _, paragraphs = sections.pop(1)
            sections[0] = (self.stream.choice(NEUTRAL_HEADINGS), sections[0][1] + paragraphs)
        return sections

    def _cells(self, axis: str, second: str) -> list[DraftSection]:
        return [
            (self._cell_heading(facts[0], axis, second), self._paragraphs(facts, (axis, second)))
            for _, group in self._groups(self.world.facts, axis)
            for _, facts in self._groups(group, second)
        ]

    def _groups(self, facts: Sequence[WorldFact], axis: str) -> list[tuple[int, list[WorldFact]]]:
        keys = [key for key in range(3) if any(key_of(fact, axis) == key for fact in facts)]
        if axis != "phase":
            self.stream.shuffle(keys)
        return [(key, [fact for fact in facts if key_of(fact, axis) == key]) for key in keys]

    def _paragraphs(
        self, facts: Sequence[WorldFact], axes: tuple[str, ...]
    ) -> list[DraftParagraph]:
        facts = list(facts)
        self.stream.shuffle(facts)
        if self.dials.detail:
            facts.sort(key=lambda fact: (fact.deed.phase, fact.year))
        most = 3 if self.dials.detail else self.stream.choice((2, 3))
        paragraphs = []
        used: set[str] = set()
        for number, chunk in enumerate(even_chunks(facts, most)):
            sentences = []
            topic = None
            if self.dials.detail == 2:
                topic = self._topic(axes[number % len(axes)], facts[0])
            if topic:
                sentences.append(Sentence(topic))
            named: set[int] = set()
            for fact in chunk:
                sentences += self.fact(fact, used, short=fact.party in named)
                named.add(fact.party)
            paragraphs.append(DraftParagraph(sentences))
        return paragraphs

    def _topic(self, axis: str, fact: WorldFact) -> str | None:
        keys = {"phase": fact.deed.phase, "theme": fact.deed.theme, "party": fact.party}
        return self.topics.on(keys[axis])

    def fact(self, fact: WorldFact, used: set[str], *, short: bool) -> list[Sentence]:
        if cue_first(self.stream, self.dials):
            return [tell_from_cue(self.stream, self.world, fact)]
        detail = self.dials.detail
        told = tell(
            self.stream,
            self.world,
            fact,
            self.split,
            used,
            short=short,
            reason=detail == 2 or (detail == 1 and self.stream.random() < 0.5),
            dated=float(detail > 0),
        )
        return [told, Sentence(self.results.next(fact))] if detail == 2 else [told]

    def _heading(self, axis: str, key: int) -> str:
        if axis == "party":
            return capital(self.world.parties[key].full)
        pool = PHASE_HEADINGS[key] if axis == "phase" else THEME_HEADINGS[key]
        return self.stream.choice(pool).format(noun=self.world.category.noun)

    def _cell_heading(self, fact: WorldFact, axis: str, second: str) -> str:
        party = capital(self.world.parties[fact.party].full)
        phase = CELL_PHASES[fact.deed.phase].format(noun=self.world.category.noun)
        if {axis, second} == {"phase", "theme"}:
            return f"{CELL_THEMES[fact.deed.theme]} {phase}"
        if {axis, second} == {"phase", "party"}:
            return f"{party} {phase}"
        return f"{party} and {PARTY_THEMES[fact.deed.theme]}"


def _fit(
    stream: random.Random, draft: ArticleDraft, world: World, dials: Dials, meter: Meter
) -> None:
    """Add remarks until the article is long enough; a bare article is never too long."""
    tokens = meter.estimate(draft.text)
    least = dials.source_tokens.min + dials.source_tokens.min // 50 + 4
    if tokens >= least:
        return
    facts = {fact.id: fact for fact in world.facts}
    remarks = Remarks(stream)
    places = [
        (paragraph, sentence)
        for _, paragraphs in draft.sections
        for paragraph in paragraphs
        for sentence in paragraph.sentences
        if sentence.fact
    ]
    stream.shuffle(places)
    for paragraph, sentence in places:
        text = remarks.next(facts[sentence.fact or ""]) if tokens < least else None
        if text:
            remark = Sentence(text)
            after = paragraph.sentences.index(sentence) + 1
            if after < len(paragraph.sentences) and not paragraph.sentences[after].fact:
                after += 1  # what came of it stays next to the fact
            paragraph.sentences.insert(after, remark)
            tokens += meter.estimate(" " + remark.text)


def _cite(stream: random.Random, draft: ArticleDraft) -> None:
    """Cite each fact's paragraph; every work is used before one is used again."""
    queue: list[Work] = []
    for _, paragraphs in draft.sections:
        for paragraph in paragraphs:
            last = len(paragraph.sentences) - 1
            stated = [i for i, s in enumerate(paragraph.sentences) if s.fact]
            places = {last, stated[0]} if len(stated) > 1 else {last}
            for place in sorted(places):
                if not queue:
                    queue = stream.sample(draft.works, len(draft.works))
                paragraph.cited[place] = [queue.pop()]
