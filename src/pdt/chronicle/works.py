"""The invented literature that Chronicle articles cite. It exists in no library."""

import random
from dataclasses import dataclass
from typing import Protocol

from pdt.chronicle.names import GIVEN, PLACES, SURNAMES
from pdt.chronicle.world import World

TITLES = (
    "A History of {place}",
    "{place} and Its Neighbors",
    "The {place} Papers, Volume {number}",
    "Letters from {place}",
    "Town and Country in {place}",
    "The Ledgers of {place}",
    "Studies in the History of {place}",
    "Memory and Record: The Case of {place}",
)
PUBLISHERS = (
    "{place} University Press",
    "{place} Historical Society",
    "Journal of {place} Studies",
    "Proceedings of the {place} Academy",
    "{place} Record Office",
    "Museum of {place}",
    "{place} Books",
)
"""All but the last are scholarly or institutional."""


class Work(Protocol):
    """What an article cites, invented or not."""

    @property
    def key(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def wikitext(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RealWork:
    """A work that exists, in the words of the article that cites it."""

    key: str
    text: str

    @property
    def wikitext(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class InventedWork:
    """One invented book or paper."""

    key: str
    author: str
    year: int
    title: str
    publisher: str

    @property
    def text(self) -> str:
        return f"{self.author} ({self.year}). {self.title}. {self.publisher}."

    @property
    def wikitext(self) -> str:
        return (
            f"{{{{cite book |author={self.author} |year={self.year} |title={self.title} "
            f"|publisher={self.publisher}}}}}"
        )


def draw_works(stream: random.Random, world: World, count: int) -> tuple[InventedWork, ...]:
    """Distinct works; some are about the event's own town."""
    works: dict[str, InventedWork] = {}
    while len(works) < count:
        surname = SURNAMES[stream.randrange(len(SURNAMES))]
        year = stream.randrange(1871, 1996)
        place = world.place if stream.random() < 0.4 else PLACES[stream.randrange(len(PLACES))]
        title = TITLES[stream.randrange(len(TITLES))]
        publisher = PUBLISHERS[stream.randrange(len(PUBLISHERS))]
        key = f"{surname.lower()}{year}"
        works[key] = InventedWork(
            key=key,
            author=f"{surname}, {GIVEN[stream.randrange(len(GIVEN))]}",
            year=year,
            title=title.format(place=place, number=stream.randrange(1, 9)),
            publisher=publisher.format(place=PLACES[stream.randrange(len(PLACES))]),
        )
    return tuple(works.values())
