"""A fictional world state: one event, three parties, and who did what.

Facts fill a grid of three phases by three themes, and the doers form a Latin square over it, so the
same facts divide evenly by phase, by theme and by party. Which division counts is up to
the request; who did what stands in the source and nowhere else.
"""

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property

from pdt.chronicle.categories import CATEGORIES, Category
from pdt.chronicle.deeds import Deed, Phase, Theme
from pdt.chronicle.dials import Dials
from pdt.chronicle.dice import dice, share
from pdt.chronicle.names import BODIES, GIVEN, NAME_POOLS, NamePool
from pdt.config import Range
from pdt.terms import Split

PARTIES = 3
HELD_OUT = 0.12
"""Share of (category, shared deed) pairs and of full names that only the test split uses."""


@dataclass(frozen=True, slots=True)
class Party:
    """One of the three that act."""

    place: str
    body: str

    @property
    def full(self) -> str:
        return f"the {self.place} {self.body}"

    @property
    def short(self) -> str:
        return f"the {self.body}"


@dataclass(frozen=True, slots=True)
class WorldFact:
    """One thing that is true in the world: a party, a deed and its value."""

    id: str
    deed: Deed
    party: int
    value: str
    false_value: str
    """A plausible value that no true fact of this world has."""
    year: int
    """When it happened; long articles say so."""


@dataclass(frozen=True)
class World:
    """Everything that is true about one event."""

    category: Category
    place: str
    began: int
    ended: int
    parties: tuple[Party, ...]
    facts: tuple[WorldFact, ...]
    """By phase, then theme."""
    false_parties: tuple[int, ...]
    """For each fact, another party that did not do it."""

    @cached_property
    def event(self) -> str:
        """The event in running text: the siege of Oldham."""
        return self.category.event_form.format(place=self.place)

    @cached_property
    def title(self) -> str:
        return f"{self.category.title_form.format(place=self.place)} ({self.began})"


def split_of_event(title: str) -> Split:
    """The split that every document of an event falls into: a matter of its name alone."""
    place = share("split", title)
    if place < 0.8:
        return Split.TRAIN
    return Split.VALIDATION if place < 0.9 else Split.TEST


def held_out_deed(category: Category, deed: Deed) -> bool:
    """Is this combination of category and shared deed kept for the test split?"""
    return deed.shared and share("deed", category.key, deed.cue) < HELD_OUT


def held_out_name(given: str, surname: str) -> bool:
    """Is this full name kept for the test split?"""
    return share("name", given, surname) < HELD_OUT


def draw_world(seed: object, index: int, split: Split, dials: Dials) -> World:
    """The world of document `index`; its event belongs to `split`, whatever the seed."""
    stream = dice("chronicle", seed, split, index, "world")
    names = NAME_POOLS[dials.names]
    while True:
        category = CATEGORIES[stream.randrange(len(CATEGORIES))]
        place = names.places[stream.randrange(len(names.places))]
        began = stream.randrange(1150, 1690)
        title = f"{category.title_form.format(place=place)} ({began})"
        if split_of_event(title) is split:
            break
    ended = began + (1 if category.key == "floods" else stream.randrange(1, 4))
    places = stream.sample([name for name in names.places if name != place], PARTIES)
    bodies = stream.sample(BODIES, PARTIES)
    parties = tuple(Party(*pair) for pair in zip(places, bodies, strict=True))
    pool = _ValuePool(stream, names, split, taken={place, *places}, began=began, ended=ended)
    facts = tuple(_draw_facts(stream, category, split, dials, pool))
    false_parties = tuple(
        (fact.party + 1 + stream.randrange(PARTIES - 1)) % PARTIES for fact in facts
    )
    return World(category, place, began, ended, parties, facts, false_parties)


class _ValuePool:
    """Values that never repeat within one world."""

    def __init__(
        self,
        stream: random.Random,
        names: NamePool,
        split: Split,
        *,
        taken: set[str],
        began: int,
        ended: int,
    ) -> None:
        self.stream, self.names = stream, names
        self.split = split
        self.taken = taken
        self.began, self.ended = began, ended

    def draw(self, deed: Deed) -> str:
        while True:
            value = self._any(deed)
            if value not in self.taken:
                self.taken.add(value)
                return value

    def year(self, phase: Phase) -> int:
        if phase is Phase.BEFORE:
            return self.began - self.stream.randrange(1, 13)
        if phase is Phase.DURING:
            return self.stream.randrange(self.began, self.ended + 1)
        return self.ended + self.stream.randrange(1, 13)

    def _any(self, deed: Deed) -> str:
        if deed.value_kind == "person":
            return self._name()
        if deed.value_kind == "place":
            return self.names.places[self.stream.randrange(len(self.names.places))]
        if deed.value_kind == "year":
            return str(self.year(deed.phase))
        return str(self.stream.randrange(21, 990))

    def _name(self) -> str:
        while True:
            given = GIVEN[self.stream.randrange(len(GIVEN))]
            surname = self.names.surnames[self.stream.randrange(len(self.names.surnames))]
            # A surname once used would make the first half of another name a cue for the wrong one.
            if surname in self.taken or given in self.taken:
                continue
            if self.split is not Split.TEST and held_out_name(given, surname):
                continue
            self.taken |= {given, surname}
            return f"{given} {surname}"


def _draw_facts(
    stream: random.Random, category: Category, split: Split, dials: Dials, pool: _ValuePool
) -> list[WorldFact]:
    shift, sign = stream.randrange(PARTIES), stream.choice((1, -1))
    dropped = stream.randrange(dials.dropped_facts + 1)
    # Cells on a transversal of the square: leaving one out keeps every division even.
    gaps = {(cell, (cell * (1 if sign > 0 else 2) + shift) % 3) for cell in range(dropped)}
    facts: list[WorldFact] = []
    counts = _spread(stream, dials.facts, sign) if dials.facts else None
    for phase in Phase:
        for theme in Theme:
            wanted = dials.facts_per_cell - ((phase, theme) in gaps)
            if counts is not None:
                wanted = counts[phase, theme]
            for place, deed in enumerate(
                _pick_deeds(stream, category, split, phase, theme, wanted)
            ):
                party = (phase + sign * theme + shift + place) % PARTIES
                value = pool.draw(deed)
                year = int(value) if deed.value_kind == "year" else pool.year(phase)
                facts.append(WorldFact(f"f{len(facts) + 1}", deed, party, value, "", year))
    return [
        WorldFact(fact.id, fact.deed, fact.party, fact.value, pool.draw(fact.deed), fact.year)
        for fact in facts
    ]


def _spread(stream: random.Random, facts: Range, sign: int) -> Counter[tuple[Phase, Theme]]:
    """How many facts each cell has. Six or more leave no phase, theme or party without one."""
    cells = [(phase, theme) for phase in Phase for theme in Theme]
    total = stream.randrange(facts.min, facts.max + 1)
    counts: Counter[tuple[Phase, Theme]] = Counter()
    # A transversal of the square has every phase, theme and party once.
    step = 1 if sign > 0 else 2
    for shift in stream.sample(range(3), 2) if total >= 6 else ():
        counts.update((Phase(cell), Theme((cell * step + shift) % 3)) for cell in range(3))
    while counts.total() < total:
        cell = cells[stream.randrange(len(cells))]
        if counts[cell] < 3:
            counts[cell] += 1
    return counts


def _pick_deeds(
    stream: random.Random,
    category: Category,
    split: Split,
    phase: Phase,
    theme: Theme,
    wanted: int,
) -> list[Deed]:
    """Distinct deeds of one cell; half the time the category's own is among them."""
    own, shared = _cell(category.key, split is Split.TEST, phase, theme)
    open_to = list(shared)
    stream.shuffle(open_to)
    first = list(own) if stream.random() < 0.5 or wanted > len(open_to) else []
    chosen = (first + open_to)[:wanted]
    stream.shuffle(chosen)
    return chosen


@cache
def _cell(
    key: str, with_held_out: bool, phase: Phase, theme: Theme
) -> tuple[tuple[Deed, ...], tuple[Deed, ...]]:
    """The category's own deeds of one cell, and the shared ones open to the split."""
    category = next(category for category in CATEGORIES if category.key == key)
    cell = [deed for deed in category.deeds if deed.phase is phase and deed.theme is theme]
    own = tuple(deed for deed in cell if not deed.shared)
    shared = (deed for deed in cell if deed.shared)
    return own, tuple(deed for deed in shared if with_held_out or not held_out_deed(category, deed))
