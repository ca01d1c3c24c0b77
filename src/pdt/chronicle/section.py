"""The prose of one lane: an opening, the facts it owns, a closing."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pdt.chronicle.article import even_chunks
from pdt.chronicle.deeds import Phase, Theme
from pdt.chronicle.dials import Dials
from pdt.chronicle.meter import Meter
from pdt.chronicle.phrasing import (
    Outcomes,
    Remarks,
    Sentence,
    Topics,
    capital,
    cue_first,
    pick,
    tell,
    tell_from_cue,
)
from pdt.chronicle.request import Part
from pdt.chronicle.world import World, WorldFact
from pdt.teacher.answer import PARAGRAPH_BREAK
from pdt.terms import Split

OPENINGS = (
    "This part of the account is about {subject}.",
    "What follows here is the story of {subject}.",
    "We now turn our attention to {subject}.",
    "These paragraphs deal with {subject} and nothing else.",
    "The next few lines are given to {subject}.",
)
LATER_OPENINGS = (
    "The evidence is scattered, but taken together it gives a clear enough picture.",
    "It is told here in some detail, because shorter accounts have left too much out.",
    "Much of it rests on papers that were never meant for the public.",
    "The order of events is mostly certain, even where the motives are not.",
    "Readers who know only the outline may be surprised by how much was recorded.",
)
CLOSINGS = (
    "That is as much as the records tell us about {subject}.",
    "So ends what can be said here about {subject}.",
    "With that, the account of {subject} is complete.",
    "Later writers have added little to this picture of {subject}.",
)
LATER_CLOSINGS = (
    "Taken one by one these steps look small, but together they changed the course of things.",
    "It would be wrong to call all of it wise, yet very little of it was done in vain.",
    "Those involved did not see the whole, and perhaps nobody could have seen it then.",
    "The traces of these decisions could be found for a long time afterward.",
)
"""The last opening and the last closing are for the test split."""
FIRST, NEXT, LAST = "First, ", "Then, ", "Last, "
"""How the paragraphs of facts begin where cues come first."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of a sentence that mean something: a fact, a reference, a coin, its use."""

    kind: str
    id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """One sentence of a section."""

    text: str
    marks: tuple[Mark, ...] = ()


@dataclass
class Node:
    """One plan node and the paragraph that realizes it."""

    objective: str
    facts: tuple[WorldFact, ...]
    pieces: list[MarkedSentence]
    references: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)


@dataclass
class SectionDraft:
    """One section before its quotes are counted."""

    part: Part
    nodes: list[Node]

    @property
    def paragraphs(self) -> list[str]:
        return [" ".join(piece.text for piece in node.pieces) for node in self.nodes]

    @property
    def text(self) -> str:
        return PARAGRAPH_BREAK.join(self.paragraphs)

    def marks(self) -> list[tuple[int, Mark]]:
        """Every mark with its node, counted in characters of the whole section."""
        found, start = [], 0
        for index, node in enumerate(self.nodes):
            for piece in node.pieces:
                found += [
                    (index, Mark(m.kind, m.id, start + m.start, start + m.end)) for m in piece.marks
                ]
                start += len(piece.text) + 1
            start += len(PARAGRAPH_BREAK) - 1
        return found


def draft_section(
    stream: random.Random,
    world: World,
    part: Part,
    split: Split,
    dials: Dials,
    meter: Meter,
    told: Mapping[str, Sentence],
) -> SectionDraft:
    """The lane's prose, as long as the dials ask; `told` is how the source tells each fact.

    Facts come in an order that the source gives away: a planner has to know it beforehand. Facts
    that were dealt come in the order they were dealt in.
    """
    facts = list(part.facts)
    if part.axis != "dealt":
        place = {fact: number for number, fact in enumerate(told)}
        facts.sort(
            key=lambda fact: (
                fact.deed.phase,
                fact.deed.theme,
                place[fact.id] if dials.facts else 0,
            )
        )
        if dials.detail:
            facts.sort(key=lambda fact: (fact.deed.phase, fact.year))
    writer = _Writer(stream, world, part, split, dials, facts, told)
    lane = SectionDraft(part, writer.nodes())
    _lengthen(stream, lane, dials, meter)
    return lane


class _Writer:
    def __init__(
        self,
        stream: random.Random,
        world: World,
        part: Part,
        split: Split,
        dials: Dials,
        facts: Sequence[WorldFact],
        told: Mapping[str, Sentence],
    ) -> None:
        self.stream, self.world, self.part = stream, world, part
        self.split, self.dials, self.facts, self.told = split, dials, facts, told
        self.topics = Topics(stream, world)
        self.used: set[str] = set()

    def nodes(self) -> list[Node]:
        most = -(-len(self.facts) // self.dials.fact_nodes)
        chunks = even_chunks(self.facts, most)
        if not self.dials.openings:
            return [self._fact_node(chunk, "") for chunk in chunks]
        begins = [FIRST, *[NEXT] * (len(chunks) - 2), LAST]
        middle = [
            self._fact_node(chunk, begin) for chunk, begin in zip(chunks, begins, strict=False)
        ]
        nodes = [self._opening(), *middle]
        if self.dials.detail or (len(middle) < 3 and self.stream.random() < 0.6):
            nodes.append(self._closing())
        return nodes

    def _opening(self) -> Node:
        text = pick(self.stream, OPENINGS, self.split)
        pieces = [MarkedSentence(text.format(subject=self.part.subject))]
        if self.dials.detail:
            pieces += map(MarkedSentence, self.stream.sample(LATER_OPENINGS, self.dials.detail))
        return Node(f"Open the part on {self.part.outline}.", (), pieces)

    def _closing(self) -> Node:
        text = pick(self.stream, CLOSINGS, self.split)
        pieces = [MarkedSentence(text.format(subject=self.part.subject))]
        if self.dials.detail:
            pieces += map(MarkedSentence, self.stream.sample(LATER_CLOSINGS, self.dials.detail))
        return Node(f"Close the part on {self.part.outline}.", (), pieces)

    def _fact_node(self, facts: Sequence[WorldFact], begin: str) -> Node:
        pieces = []
        if self.dials.detail == 2 and (topic := self._topic(facts[0])):
            pieces.append(MarkedSentence(topic))
        named: set[int] = {self.part.key} if self.part.axis == "party" else set()
        for fact in facts:
            told = self._told(fact, begin, short=fact.party in named)
            named.add(fact.party)
            begin = ""
            pieces.append(MarkedSentence(told.text, (Mark("fact", fact.id, told.start, told.end),)))
        cues = [f"the {fact.deed.cue}" for fact in facts]
        listed = cues[0] if len(cues) == 1 else f"{', '.join(cues[:-1])} and {cues[-1]}"
        return Node(f"Tell of {listed}.", tuple(facts), pieces)

    def _told(self, fact: WorldFact, begin: str, *, short: bool) -> Sentence:
        if self.dials.source_words and self.stream.random() < self.dials.source_words:
            return self.told[fact.id]
        if cue_first(self.stream, self.dials):
            return tell_from_cue(self.stream, self.world, fact, begin=begin)
        return tell(
            self.stream,
            self.world,
            fact,
            self.split,
            self.used,
            short=short,
            reason=self.dials.detail > 0,
            dated=0.6 if self.dials.detail else 0.0,
        )

    def _topic(self, fact: WorldFact) -> str | None:
        """A topic sentence about something that the section as a whole is not about."""
        keys: list[Phase | Theme | int] = [fact.deed.phase, fact.deed.theme]
        axes = ["phase", "theme"]
        left = [key for key, axis in zip(keys, axes, strict=True) if axis != self.part.axis]
        return self.topics.on(self.stream.choice(left))


def _lengthen(stream: random.Random, lane: SectionDraft, dials: Dials, meter: Meter) -> None:
    """Add results (long documents) and remarks until the drawn length is reached."""
    low, high = dials.section_tokens.min, dials.section_tokens.max
    # Room is left for a coined name and its use.
    aim = stream.randrange(low + low // 12 + 2, max(low + low // 12 + 3, high - 2 * (high // 10)))
    tokens = meter.estimate(lane.text)
    results = Outcomes(stream)
    remarks = Remarks(stream)
    told = [(node, fact) for node in lane.nodes for fact in node.facts]
    for offer_result in (True, *[False] * dials.remarks):
        if offer_result and not dials.detail:
            continue
        stream.shuffle(told)
        for node, fact in told:
            if tokens >= aim:
                return
            text = results.next(fact) if offer_result else remarks.next(fact)
            if text is None:
                continue
            place = next(
                index
                for index, piece in enumerate(node.pieces)
                if any(mark.id == fact.id for mark in piece.marks)
            )
            while place + 1 < len(node.pieces) and not node.pieces[place + 1].marks:
                place += 1
            node.pieces.insert(place + 1, MarkedSentence(text))
            tokens += meter.estimate(" " + text)
    if tokens < low + 2:
        node = lane.nodes[0]
        node.pieces += [MarkedSentence(text) for text in LATER_OPENINGS[:2]]


def sentence_of(form: str, word: str, kind: str, mark_id: str) -> MarkedSentence:
    """A sentence in which `word` fills the place `{name}` and is marked."""
    text = capital(form.format(name=word))
    start = text.index(word)
    return MarkedSentence(text, (Mark(kind, mark_id, start, start + len(word)),))
