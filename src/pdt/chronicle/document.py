"""One Chronicle document: world, source, facts, request, plans, sections, dependencies.

`Chronicle(seed, split, dials, meter).document(i)` depends on nothing but its arguments.

Paper: §4.1, §4.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pdt.chronicle.article import ArticleDraft, draft_article
from pdt.chronicle.dependencies import Link, link_lanes, named_in_request
from pdt.chronicle.dials import Dials
from pdt.chronicle.dice import dice, digest_of
from pdt.chronicle.markup import GENERATOR, Source, publish
from pdt.chronicle.meter import Meter
from pdt.chronicle.phrasing import statement_of
from pdt.chronicle.request import draw_request
from pdt.chronicle.section import Mark, SectionDraft, draft_section
from pdt.chronicle.world import World, WorldFact, draw_world
from pdt.config import Range
from pdt.errors import PdtError
from pdt.sources.article import Article
from pdt.sources.quote import Quote, quote_at
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
from pdt.teacher.document import TaughtBy, TaughtDocument
from pdt.teacher.facts import Fact, FactInventory, HardNegative
from pdt.terms import Alteration, FactRole, Split

VERSION = "5"
ATTEMPTS = 2000
ALTERS = {
    "person": Alteration.ENTITY,
    "place": Alteration.ENTITY,
    "number": Alteration.QUANTITY,
    "year": Alteration.DATE,
}


@dataclass(frozen=True)
class ChronicleDocument:
    """A taught document with what it was made from."""

    taught: TaughtDocument
    source: Source
    world: World


@dataclass(frozen=True)
class Chronicle:
    """An endless corpus: one split of one seed."""

    seed: int
    split: Split
    dials: Dials
    meter: Meter

    def documents(self, count: int, *, start: int = 0) -> Iterator[ChronicleDocument]:
        for index in range(start, start + count):
            yield self.document(index)

    def document(self, index: int) -> ChronicleDocument:
        """Document `index`, the same on every machine."""
        for attempt in range(ATTEMPTS):
            document = self._attempt(index, attempt)
            if document is not None:
                return document
        raise PdtError(
            f"Chronicle document {index} of seed {self.seed} ({self.split}) does not fit: no "
            f"place for its dependencies or lengths in {ATTEMPTS} attempts.\n"
            f"The dials ask for lags {self.dials.lags} in sections of "
            f"{self.dials.section_tokens} tokens; allow shorter lags, longer "
            "sections or fewer coins and receivers: a paragraph of facts has one name."
        )

    def _attempt(self, index: int, attempt: int) -> ChronicleDocument | None:
        names = ("chronicle", self.seed, self.split, index)
        world = draw_world(self.seed, index, self.split, self.dials)
        stream = dice(*names, "text", attempt)
        draft = draft_article(stream, world, self.split, self.dials, self.meter)
        request_dice = dice(*names, "request")
        assignment = draw_request(request_dice, world, self.split, self.dials.divisions)
        lanes = [
            draft_section(stream, world, part, self.split, self.dials, self.meter, draft.told)
            for part in assignment.parts
        ]
        links = link_lanes(
            dice(*names, "choices"), dice(*names, "layout", attempt), lanes, self.dials, self.meter
        )
        if links is None or not self._lengths_fit(draft, lanes):
            return None
        request = " ".join([assignment.request, *named_in_request(links, lanes)])
        lane_at_position = dice(*names, "lanes").sample(range(3), 3)
        source = publish(
            draft,
            page_id=int.from_bytes(digest_of("page", world.title)[:4], "big"),
            revision_id=int.from_bytes(digest_of("revision", *names)[:4], "big"),
        )
        taught = TaughtDocument(
            record_id=f"chronicle-{self.dials.size}-{self.split}-{self.seed}-{index:07d}",
            split=self.split,
            family_key=f"chronicle:{digest_of('page', world.title).hex()[:16]}",
            category=world.category.key,
            article=source.article,
            inventory=_inventory(world, draft, source.article, self.dials),
            answer=_answer(world, request, lanes, links, lane_at_position),
            teacher=TaughtBy(
                name=GENERATOR,
                version=VERSION,
                settings={
                    "seed": self.seed,
                    "index": index,
                    "size": self.dials.size,
                    "division": assignment.parts[0].axis,
                    "event": world.title,
                },
            ),
        )
        return ChronicleDocument(taught, source, world)

    def _lengths_fit(self, draft: ArticleDraft, lanes: list[SectionDraft]) -> bool:
        return self._fits(draft.text, self.dials.source_tokens) and all(
            self._fits(lane.text, self.dials.section_tokens) for lane in lanes
        )

    def _fits(self, text: str, limits: Range) -> bool:
        """Tokens within limits; counted exactly only when the estimate is near a limit."""
        about = self.meter.estimate(text)
        doubt = about // 20 + 4
        if limits.min + doubt <= about <= limits.max - doubt:
            return True
        return limits.holds(len(self.meter.spans(text)))


def _inventory(world: World, draft: ArticleDraft, article: Article, dials: Dials) -> FactInventory:
    """Every fact with its place: its clause, or its sentence where sections repeat the source."""
    places: dict[str, tuple[str, str, int, int]] = {}
    citations: dict[str, tuple[str, ...]] = {}
    paragraphs = [paragraph for _, group in draft.sections for paragraph in group]
    for drafted, (_, clean) in zip(paragraphs, article.paragraphs(), strict=True):
        citations[clean.id] = clean.citation_ids
        start = 0
        for sentence in drafted.sentences:
            if sentence.fact:
                clause = (sentence.start, sentence.end)
                first, last = (0, len(sentence.text)) if dials.source_words else clause
                places[sentence.fact] = (clean.id, clean.text, start + first, start + last)
            start += len(sentence.text) + 1
    facts = []
    for number, fact in enumerate(world.facts):
        paragraph, text, start, end = places[fact.id]
        facts.append(
            Fact(
                id=fact.id,
                statement=statement_of(world, fact),
                paragraph_id=paragraph,
                quote=quote_at(text, start, end),
                citation_ids=citations[paragraph],
                hard_negative=_hard_negative(world, fact, world.false_parties[number], number),
            )
        )
    order = {paragraph.id: n for n, (_, paragraph) in enumerate(article.paragraphs())}
    facts.sort(key=lambda fact: (order[fact.paragraph_id], fact.quote.start))
    return FactInventory(bundle_id=article.bundle_id, facts=tuple(facts))


def _hard_negative(world: World, fact: WorldFact, false_party: int, number: int) -> HardNegative:
    """Every third fact gets the wrong party, the others a wrong value."""
    statement = statement_of(world, fact)
    alters = ALTERS[fact.deed.value_kind]
    original, replacement = fact.value, fact.false_value
    if number % 3 == 2:
        alters = Alteration.RELATION
        original, replacement = (
            world.parties[party].full.removeprefix("the ") for party in (fact.party, false_party)
        )
    return HardNegative(
        statement=statement.replace(original, replacement),
        alters=alters,
        original=original,
        replacement=replacement,
    )


def _answer(
    world: World,
    request: str,
    by_position: list[SectionDraft],
    links: list[Link],
    lane_at_position: list[int],
) -> Answer:
    position_of_lane = [lane_at_position.index(lane) for lane in range(3)]
    lanes = [by_position[position] for position in position_of_lane]
    sections = tuple(TargetSection(paragraphs=tuple(lane.paragraphs)) for lane in lanes)
    plans = tuple(
        Plan(
            nodes=tuple(
                PlanNode(
                    objective=node.objective,
                    owned_facts=tuple(fact.id for fact in node.facts),
                    reference_facts=tuple(node.references),
                    dependencies=tuple(node.dependencies),
                    target_paragraphs=(index,),
                )
                for index, node in enumerate(lane.nodes)
            )
        )
        for lane in lanes
    )
    marks = [lane.marks() for lane in lanes]
    texts = [section.text for section in sections]
    return Answer(
        request=request,
        plans=plans,
        sections=sections,
        lane_at_position=tuple(lane_at_position),
        roles=_roles(world, marks, texts),
        dependencies=tuple(_dependency(link, marks, texts, lane_at_position) for link in links),
    )


def _roles(
    world: World, marks: list[list[tuple[int, Mark]]], texts: list[str]
) -> tuple[FactRoles, ...]:
    """Who owns, mentions or leaves out each fact, with the words that show it."""
    said: dict[tuple[str, int], tuple[FactRole, list[Quote]]] = {}
    kinds = {"fact": FactRole.OWNER, "use": FactRole.REFERENCE}
    facts = {fact.id for fact in world.facts}
    for lane, found in enumerate(marks):
        for _, mark in found:
            if mark.kind in kinds and mark.id in facts:
                entry = said.setdefault((mark.id, lane), (kinds[mark.kind], []))
                entry[1].append(quote_at(texts[lane], mark.start, mark.end))
    absent = LaneRole(role=FactRole.ABSENT)
    return tuple(
        FactRoles(
            fact_id=fact.id,
            lanes=tuple(
                LaneRole(role=said[fact.id, lane][0], quotes=tuple(said[fact.id, lane][1]))
                if (fact.id, lane) in said
                else absent
                for lane in range(len(texts))
            ),
        )
        for fact in world.facts
    )


def _dependency(
    link: Link,
    marks: list[list[tuple[int, Mark]]],
    texts: list[str],
    lane_at_position: list[int],
) -> Dependency:
    def end(position: int, kind: str) -> DependencyEnd:
        lane = lane_at_position[position]
        node, mark = next(
            (node, mark) for node, mark in marks[lane] if mark.kind == kind and mark.id == link.mark
        )
        return DependencyEnd(
            lane=lane, node=node, quote=quote_at(texts[lane], mark.start, mark.end)
        )

    coined = None
    if link.coin is not None:
        coined = CoinedChoice(
            choice_id=link.mark,
            text=link.coin.name,
            entropy_bits=link.coin.bits,
            alternatives=link.coin.pool,
        )
    return Dependency(
        id=link.id,
        owner=end(link.owner, "coin"),
        receiver=end(link.receiver, "use"),
        fact_id=link.fact.id if link.fact else None,
        coined=coined,
    )
