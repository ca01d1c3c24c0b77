"""The request, and the division into three sections that follows from it.

One source divides by phase, by theme or by party. Only the request says which, and in which order
the reader wants the parts; only the source says which fact is whose. A division may also be dealt:
then neither says anything, and only the plan knows.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pdt.chronicle.article import AXES, key_of
from pdt.chronicle.phrasing import pick
from pdt.chronicle.world import World, WorldFact
from pdt.terms import Split

BY_PHASE = (
    "Tell the story of {event} in three phases.",
    "Explain {event} in order of time, in three sections.",
    "Write about {event} in three sections: before, during and after.",
    "Describe how {event} came about, how it went and what followed.",
    "Tell the story of {event} step by step, in three sections.",
    "Describe {event} step by step: how it came about, how it went and what followed.",
)
BY_THEME = (
    "Explain {event} by theme, in three sections.",
    "Write a history of {event} that treats each theme apart.",
    "Describe {event} under three themes.",
    "Write about {event} in three sections, one for each theme.",
    "Describe {event} under three themes, one section for each.",
)
BY_PARTY = (
    "Explain {event} in three sections, one for each party.",
    "Write a history of {event} that gives every party its own section.",
    "Tell how each of the three parties lived {event}.",
    "Write about {event} as each party lived it.",
    "Describe {event} as each of the three parties lived it.",
)
DEALT = (
    "Write about {event} in three sections.",
    "Tell the story of {event}.",
    "Explain {event} in three parts.",
    "Describe {event} in three sections.",
    "Write a history of {event}.",
    "Tell what happened in {event}, in three sections.",
    "Describe what happened.",
    "Write down what is known about {event}.",
    "Give an account of {event} in three parts.",
)
LISTED = (
    "Write three sections on {event}: one on {a}, one on {b} and one on {c}.",
    "Explain {event} in three parts: first {a}, then {b}, then {c}.",
    "Describe {event}. Begin with {a}, go on to {b} and end with {c}.",
)
"""The last form of each pool is for the test split; where it does not list the parts itself, it is
a new sentence of words that training has."""

THEMES = ("the people", "the money and supplies", "the places")
THEME_SUBJECTS = (
    "the people behind {event}",
    "the money and supplies behind {event}",
    "the places that mattered in {event}",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One section to write: what it is about and which facts it owns."""

    axis: str
    key: int
    subject: str
    """In a sentence: the time before the siege, the people of the siege, the Oldham council."""
    outline: str
    """In a plan, without any value: before the siege, the people, the council."""
    facts: tuple[WorldFact, ...]


@dataclass(frozen=True, slots=True)
class DividedRequest:
    """The request and its three parts in presentation order."""

    request: str
    parts: tuple[Part, ...]


def draw_request(
    stream: random.Random, world: World, split: Split, axes: Sequence[str] = AXES
) -> DividedRequest:
    """A request for this world; every axis is as likely as the others."""
    axis = axes[stream.randrange(len(axes))]
    order = [0, 1, 2]
    if axis == "dealt":
        request = pick(stream, DEALT, split).format(event=world.event)
        return DividedRequest(request, tuple(_deal(stream, world)))
    if axis == "phase":
        request = pick(stream, BY_PHASE, split).format(event=world.event)
    elif stream.random() < 0.5:
        request = pick(stream, BY_THEME if axis == "theme" else BY_PARTY, split)
        request = request.format(event=world.event)
    else:
        stream.shuffle(order)
        named = THEMES if axis == "theme" else [party.full for party in world.parties]
        a, b, c = (named[key] for key in order)
        form = pick(stream, LISTED, split)
        request = form.format(event=world.event, a=a, b=b, c=c)
    return DividedRequest(request, tuple(_part(world, axis, key) for key in order))


def _deal(stream: random.Random, world: World) -> list[Part]:
    """Facts by chance on three lanes and in any order: nothing but a plan can tell the division."""
    facts = stream.sample(world.facts, len(world.facts))
    even, over = divmod(len(facts), 3)
    sizes = [even + (place < over) for place in range(3)]
    if even > 1 and stream.random() < 0.5:  # one lane has more to tell than another
        sizes[stream.randrange(3)] -= 1
        sizes[sizes.index(min(sizes)) - 1] += 1
    stream.shuffle(sizes)
    parts, start = [], 0
    for key, size in enumerate(sizes):
        subject = f"what is known of {world.event}"
        parts.append(
            Part("dealt", key, subject, "what is known", tuple(facts[start : start + size]))
        )
        start += size
    return parts


def _part(world: World, axis: str, key: int) -> Part:
    noun = world.category.noun
    if axis == "phase":
        subject = tuple(
            f"the {name} {world.event}" for name in ("time before", "course of", "time after")
        )
        outline = (f"the time before the {noun}", f"the {noun}", f"the time after the {noun}")
        names = subject[key], outline[key]
    elif axis == "theme":
        names = THEME_SUBJECTS[key].format(event=world.event), THEMES[key]
    else:
        names = world.parties[key].full, world.parties[key].short
    facts = tuple(fact for fact in world.facts if key_of(fact, axis) == key)
    return Part(axis, key, *names, facts)
