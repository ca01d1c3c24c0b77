"""Who tells what: the claims of a source divided into three lanes and their nodes.

Some divisions follow from the source or from the words of the request. `dealt` follows from
nothing: the claims are dealt at random and the request is silent, so that only the plan knows.

Paper: §2.1 (every fact has one owner), §4.2.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pdt.extractive.alter import is_counted, is_dated
from pdt.extractive.claims import Claim

Lane = list[list[int]]
"""The nodes of a lane, each a list of places in the inventory."""


@dataclass(frozen=True)
class Division:
    """Three lanes in the order in which the reader gets them."""

    name: str
    lanes: list[Lane]
    parts: tuple[str, ...] = ()
    """What the request calls the three parts; none where it is silent."""


def draw_division(
    stream: random.Random,
    name: str,
    claims: Sequence[Claim],
    *,
    nodes: tuple[int, int],
    node_facts: Sequence[float],
) -> Division | None:
    """A division of this name, or None where the source does not allow it."""
    parted = DIVISIONS[name](stream, claims)
    if parted is None:
        return None
    parts, names = parted
    lanes = [into_nodes(stream, part, nodes, node_facts) for part in parts]
    if any(lane is None for lane in lanes):
        return None
    return Division(name, [lane for lane in lanes if lane is not None], names)


Parted = tuple[list[list[list[int]]], tuple[str, ...]]
"""By lane the groups that belong together, and the names of the parts."""


def _dealt(stream: random.Random, claims: Sequence[Claim]) -> Parted:
    order = list(range(len(claims)))
    stream.shuffle(order)
    return [[part] for part in _cut(stream, order)], ()


def _by_position(stream: random.Random, claims: Sequence[Claim]) -> Parted:
    return [[part] for part in _cut(stream, list(range(len(claims))))], ()


def _by_note(stream: random.Random, claims: Sequence[Claim]) -> Parted | None:
    """Whole notes in any order; the request names them."""
    return _grouped(stream, claims, shuffled=True)


def _by_heading(stream: random.Random, claims: Sequence[Claim]) -> Parted | None:
    """Whole notes or sections in the order of the source; the request may be silent."""
    found = _grouped(stream, claims, shuffled=False)
    return (found[0], ()) if found else None


def _by_words(stream: random.Random, claims: Sequence[Claim]) -> Parted | None:
    """By what the request asks for: what each is, when, how much, and the rest."""
    tests: dict[str, Callable[[Claim], bool]] = {
        "what": lambda claim: claim.opens,
        "when": lambda claim: is_dated(claim.statement),
        "numbers": lambda claim: is_counted(claim.statement),
    }
    chosen = stream.sample(list(tests), 2)
    parts: dict[str, list[int]] = {name: [] for name in (*chosen, "rest")}
    for place, claim in enumerate(claims):
        parts[next((name for name in chosen if tests[name](claim)), "rest")].append(place)
    if any(len(part) < 2 for part in parts.values()):
        return None
    return [[part] for part in parts.values()], tuple(parts)


DIVISIONS: dict[str, Callable[[random.Random, Sequence[Claim]], Parted | None]] = {
    "dealt": _dealt,
    "position": _by_position,
    "note": _by_note,
    "heading": _by_heading,
    "words": _by_words,
}


def _grouped(stream: random.Random, claims: Sequence[Claim], *, shuffled: bool) -> Parted | None:
    groups: dict[int, list[int]] = {}
    for place, claim in enumerate(claims):
        groups.setdefault(claim.group, []).append(place)
    order = list(groups)
    if len(order) < 3:
        return None
    if shuffled:
        stream.shuffle(order)
    lanes: list[list[list[int]]] = [[], [], []]
    for number, part in enumerate(_even(order, [len(groups[g]) for g in order])):
        lanes[number] = [groups[group] for group in part]
    names = [[_name(claims[group[0]]) for group in lane] for lane in lanes]
    if any(not lane or any(name is None for name in lane) for lane in names):
        return None
    return lanes, tuple(listed([name for name in lane if name]) for lane in names)


def _name(claim: Claim) -> str | None:
    """What a request calls the part that a claim begins."""
    return (
        claim.subject if claim.heading is None or claim.subject == claim.heading else claim.heading
    )


def listed(names: Sequence[str]) -> str:
    """`A`, `A and B`, `A, B and C`, as they stand inside a sentence."""
    names = [f"the{name[3:]}" if name.startswith("The ") else name for name in names]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cut(stream: random.Random, order: list[int]) -> list[list[int]]:
    """Three runs of about the same length."""
    third = len(order) / 3
    first = round(third + stream.uniform(-0.6, 0.6))
    second = round(2 * third + stream.uniform(-0.6, 0.6))
    first = max(2, min(first, len(order) - 4))
    second = max(first + 2, min(second, len(order) - 2))
    return [order[:first], order[first:second], order[second:]]


def _even(order: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Three runs of whole groups, as even in size as can be."""
    best: tuple[int, list[list[int]]] | None = None
    for i in range(1, len(order) - 1):
        for j in range(i + 1, len(order)):
            sums = [sum(sizes[:i]), sum(sizes[i:j]), sum(sizes[j:])]
            spread = max(sums) - min(sums)
            if best is None or spread < best[0]:
                best = (spread, [list(order[:i]), list(order[i:j]), list(order[j:])])
    assert best is not None
    return best[1]


def into_nodes(
    stream: random.Random,
    groups: Sequence[Sequence[int]],
    nodes: tuple[int, int],
    node_facts: Sequence[float],
) -> Lane | None:
    """Nodes of so many claims that do not cross a group, as many as a plan may have."""
    fewest, limit = nodes
    for _ in range(12):
        lane: Lane = []
        for group in groups:
            left = list(group)
            while left:
                size = stream.choices(range(1, len(node_facts) + 1), node_facts)[0]
                size = min(size, len(left))
                lane.append(left[:size])
                left = left[size:]
        if fewest <= len(lane) <= limit:
            return lane
    return None
