"""Which lanes depend on one another: on a coined name, on a source fact, or not at all.

Paper: §4.2 (cross-lane references are optional, and none is invented to make the bus look useful).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pdt.chronicle.coins import Coin, draw_coin
from pdt.chronicle.dials import Dials
from pdt.chronicle.meter import Meter
from pdt.chronicle.phrasing import capital
from pdt.chronicle.placement import BLOCK, measured_lag, place
from pdt.chronicle.section import Mark, MarkedSentence, Node, SectionDraft, sentence_of
from pdt.chronicle.world import WorldFact

RECALLS = (
    "Here too one should keep in mind {name}.",
    "It is best understood together with {name}.",
    "Anyone who followed these things also knew of {name}.",
    "A fair account has to mention in the same breath {name}.",
)


@dataclass(frozen=True, slots=True)
class Link:
    """One dependency between two positions of the presentation order."""

    id: str
    owner: int
    receiver: int
    mark: str
    """Of the words at both ends."""
    coin: Coin | None = None
    fact: WorldFact | None = None


def link_lanes(
    choices: random.Random,
    layout: random.Random,
    lanes: list[SectionDraft],
    dials: Dials,
    meter: Meter,
) -> list[Link] | None:
    """Write this document's dependencies into its sections; None if they do not fit.

    `choices` draws what is coined, `layout` where it stands: trying another layout never changes
    the choice, so the choices stay uniform.
    """
    kind = choices.random()
    if kind < dials.coined_share:
        links = _coined(choices, layout, lanes, dials, meter)
    elif kind < dials.coined_share + dials.ordinary_share:
        links = _ordinary(layout, lanes, meter)
    else:
        return []
    if links is None or not _all_hold(links, lanes, meter, dials):
        return None
    return links


def named_in_request(links: Sequence[Link], lanes: Sequence[SectionDraft]) -> list[str]:
    """With which fact the reader wants a thing named, and named again; never the name.

    Nothing else says where a name stands: a planner that did not know could only hedge.
    """
    asked: list[str] = []
    for link in links:
        owner, receiver = lanes[link.owner], lanes[link.receiver]
        if link.fact is not None:
            with_cue = _cue_before(receiver, link.mark)
            asked.append(f"With the {with_cue} the {link.fact.deed.cue} is named again.")
        if link.coin is None:
            continue
        noun = link.coin.thing.noun
        article = "an" if noun[0] in "aeiou" else "a"
        first = f"With the {_cue_before(owner, link.mark)} {article} {capital(noun)} is named."
        if first not in asked:
            asked.append(first)
        again = _cue_before(receiver, link.mark)
        asked.append(f"With the {again} the {capital(noun)} is named again.")
    return asked


def _cue_before(lane: SectionDraft, mark_id: str) -> str:
    """The cue of the fact that a coined name follows."""
    cues = {fact.id: fact.deed.cue for node in lane.nodes for fact in node.facts}
    marks = [mark.id for _, mark in lane.marks()]
    return next(cues[found] for found in reversed(marks[: marks.index(mark_id)]) if found in cues)


def _coined(
    choices: random.Random,
    layout: random.Random,
    lanes: list[SectionDraft],
    dials: Dials,
    meter: Meter,
) -> list[Link] | None:
    links: list[Link] = []
    left = {False: list(dials.bits), True: list(dials.bits)}
    for number in range(choices.randrange(dials.least_coins, dials.coins + 1)):
        second = number % 2 == 1
        bits = choices.choice(left[second])
        left[second] = [other for other in left[second] if other != bits]
        coin = draw_coin(choices, bits, second=second)
        owner = layout.randrange(2)
        receivers = list(range(owner + 1, 3))
        layout.shuffle(receivers)
        receivers = receivers[: layout.randrange(dials.receivers) + 1]
        mark = f"c{number + 1}"
        naming = sentence_of(layout.choice(coin.thing.naming), coin.name, "coin", mark)
        for count, receiver in enumerate(receivers):
            recalling = sentence_of(layout.choice(coin.thing.recalling), coin.name, "use", mark)
            lags = layout.sample(dials.lags, len(dials.lags))
            nodes = place(
                layout,
                (lanes[owner], lanes[receiver]),
                (naming, recalling),
                lags,
                meter,
                barrier_tokens=dials.barrier_tokens,
                owner_placed=count > 0,
            )
            if nodes is None:
                return None
            if count == 0:
                _also(nodes[0], f"give the {coin.thing.noun} its name")
            _also(nodes[1], f"recall the {coin.thing.noun} by its name")
            links.append(Link(f"d{len(links) + 1}", owner, receiver, mark, coin=coin))
            nodes[1].dependencies.append(links[-1].id)
    return links


def _ordinary(stream: random.Random, lanes: list[SectionDraft], meter: Meter) -> list[Link] | None:
    """A later section refers to a fact that an earlier one owns."""
    owner = stream.randrange(2)
    receiver = stream.randrange(owner + 1, 3)
    told = [(node, fact) for node in lanes[owner].nodes for fact in node.facts]
    stream.shuffle(told)
    for node, fact in told:
        words = fact.deed.definite_with(fact.value)
        recalling = sentence_of(stream.choice(RECALLS), words, "use", fact.id)
        _mark_as_coin(node, fact.id)
        nodes = place(
            stream,
            (lanes[owner], lanes[receiver]),
            (recalling, recalling),
            stream.sample((1, 2, 3), 3),
            meter,
            owner_placed=True,
        )
        if nodes is not None:
            _also(nodes[1], f"recall the {fact.deed.cue}")
            nodes[1].references.append(fact.id)
            nodes[1].dependencies.append("d1")
            return [Link("d1", owner, receiver, fact.id, fact=fact)]
    return None


def _mark_as_coin(node: Node, fact_id: str) -> None:
    """The owner's words for a fact are the first end of a dependency too."""
    for index, piece in enumerate(node.pieces):
        for mark in piece.marks:
            if mark.kind == "fact" and mark.id == fact_id:
                again = Mark("coin", mark.id, mark.start, mark.end)
                node.pieces[index] = MarkedSentence(piece.text, (*piece.marks, again))
                return


def _also(node: Node, task: str) -> None:
    node.objective = f"{node.objective.removesuffix('.')}, and {task}."


def _all_hold(links: list[Link], lanes: list[SectionDraft], meter: Meter, dials: Dials) -> bool:
    """A later sentence may have moved an earlier word: measure every link once more."""
    return all(
        measured_lag(
            lanes[link.owner],
            lanes[link.receiver],
            link.mark,
            meter,
            dials.barrier_tokens if link.coin else BLOCK - 1,
        )
        is not None
        for link in links
    )
