"""What an owner section coins: a name that nobody could know without being told.

The noun of the thing (song, bell, banner …) tells how many words it may be called after: a reader
who knows the noun and nothing else is uncertain by exactly h bits.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pdt.chronicle.dials import APART
from pdt.chronicle.names import COINED


@dataclass(frozen=True, slots=True)
class Thing:
    """A kind of coined thing, and what is said where it is named and where it is recalled."""

    noun: str
    naming: tuple[str, ...]
    recalling: tuple[str, ...]


FIRST_THINGS = (
    Thing(
        "song",
        (
            "A new song went around in those days, the Song of the {name}.",
            "Someone made a song about it, the Song of the {name}.",
        ),
        (
            "In the evenings one could still hear the Song of the {name}.",
            "Many people knew by heart the Song of the {name}.",
        ),
    ),
    Thing(
        "bell",
        (
            "A bell was cast as a reminder, the Bell of the {name}.",
            "The great bell was given a new name, the Bell of the {name}.",
        ),
        (
            "Every noon the people heard the Bell of the {name}.",
            "The news was given out with the Bell of the {name}.",
        ),
    ),
    Thing(
        "banner",
        (
            "A new flag was sewn for the day, the Banner of the {name}.",
            "Over the roofs there flew a new sign, the Banner of the {name}.",
        ),
        (
            "Everyone could see from afar the Banner of the {name}.",
            "Some were proud to walk behind the Banner of the {name}.",
        ),
    ),
    Thing(
        "oath",
        (
            "Those present swore a solemn vow, the Oath of the {name}.",
            "The words spoken that day became known as the Oath of the {name}.",
        ),
        (
            "Some still felt bound by the Oath of the {name}.",
            "It was in keeping with the Oath of the {name}.",
        ),
    ),
    Thing(
        "road",
        (
            "The track that led there got a name, the Road of the {name}.",
            "Carters gave the new way a name, the Road of the {name}.",
        ),
        (
            "Most of the traffic now passed along the Road of the {name}.",
            "Messengers came and went on the Road of the {name}.",
        ),
    ),
    Thing(
        "ship",
        (
            "A small vessel was named for the occasion, the Ship of the {name}.",
            "The boat that brought the news was called the Ship of the {name}.",
        ),
        (
            "Word of this arrived with the Ship of the {name}.",
            "Some of the goods had come aboard the Ship of the {name}.",
        ),
    ),
    Thing(
        "house",
        (
            "The place where they met was called the House of the {name}.",
            "A sign was hung above the door, and it became the House of the {name}.",
        ),
        (
            "Much of this was talked over in the House of the {name}.",
            "Late guests could always find a bed in the House of the {name}.",
        ),
    ),
    Thing(
        "seal",
        (
            "Letters now carried a new mark, the Seal of the {name}.",
            "The papers were closed with a new stamp, the Seal of the {name}.",
        ),
        (
            "Each of these papers carried the Seal of the {name}.",
            "No copy was valid without the Seal of the {name}.",
        ),
    ),
)
SECOND_THINGS = (
    Thing(
        "tale",
        (
            "Grandparents turned it into a story, the Tale of the {name}.",
            "What was seen there became a story, the Tale of the {name}.",
        ),
        (
            "Children would ask again and again for the Tale of the {name}.",
            "It reminded many of the Tale of the {name}.",
        ),
    ),
    Thing(
        "feast",
        (
            "The day is still kept as a holiday, the Feast of the {name}.",
            "They marked the occasion with a meal, the Feast of the {name}.",
        ),
        (
            "Accounts were settled every year at the Feast of the {name}.",
            "Many of them met again at the Feast of the {name}.",
        ),
    ),
    Thing(
        "book",
        (
            "All of it was written down in a volume, the Book of the {name}.",
            "The clerks began a new register, the Book of the {name}.",
        ),
        (
            "The details were entered in the Book of the {name}.",
            "Anyone could look it up in the Book of the {name}.",
        ),
    ),
    Thing(
        "order",
        (
            "A few of them founded a society, the Order of the {name}.",
            "Those who had served formed a fellowship, the Order of the {name}.",
        ),
        (
            "Help came without being asked from the Order of the {name}.",
            "Some of those named here belonged to the Order of the {name}.",
        ),
    ),
    Thing(
        "march",
        (
            "Drummers put together a tune, the March of the {name}.",
            "The way home was remembered as the March of the {name}.",
        ),
        (
            "Old men still talked about the March of the {name}.",
            "The pipers knew it well, for they had played the March of the {name}.",
        ),
    ),
    Thing(
        "table",
        (
            "Those who decided sat together, and people spoke of the Table of the {name}.",
            "The bench in the corner became known as the Table of the {name}.",
        ),
        (
            "The last word lay with the Table of the {name}.",
            "It had been agreed beforehand at the Table of the {name}.",
        ),
    ),
    Thing(
        "game",
        (
            "Boys in the lanes invented a sport, the Game of the {name}.",
            "Idle guards passed the time with a new pastime, the Game of the {name}.",
        ),
        (
            "On holidays the whole town played the Game of the {name}.",
            "Large sums were lost at the Game of the {name}.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Coin:
    """One coined choice, drawn from 2^h equally likely words."""

    thing: Thing
    name: str
    bits: int
    pool: tuple[str, ...]


def draw_coin(stream: random.Random, bits: int, *, second: bool = False) -> Coin:
    """A choice of `bits` bits. Every second coin of a document is of another kind."""
    thing = (SECOND_THINGS if second else FIRST_THINGS)[bits - 1]
    pool = _words(bits, COINED[::-1] if second else COINED)
    return Coin(thing, pool[stream.randrange(len(pool))], bits, pool)


def _words(bits: int, words: Sequence[str]) -> tuple[str, ...]:
    """2^bits words, which no choice of fewer bits has as long as there are enough."""
    first = 2**bits - 2 if bits <= APART else 0
    return tuple(words[first : first + 2**bits])
