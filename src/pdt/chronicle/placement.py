"""Where a coined name and its use may stand, so that a note can carry it across the barrier.

The owner's word must lie in a block that is completed; the receiver's word lies `lag` blocks later.
Both are decided on tokens.

Paper: §4.2 (Stage B), Fig. 3.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from pdt.chronicle.meter import Meter
from pdt.chronicle.section import MarkedSentence, Node, SectionDraft
from pdt.teacher.answer import PARAGRAPH_BREAK

BLOCK = 32
WINDOW = 16


PADS = (
    "In those days it was new to many people.",
    "The story is told in the records of the time.",
    "The story is told in the records, and nobody spoke of it in those days.",
)
"""Sentences of different lengths that put a word nearer to its barrier."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for one more sentence, and about where its marked word would fall."""

    node: int
    piece: int
    token: int
    pads: tuple[MarkedSentence, ...] = ()
    """Sentences that go before it."""


def spots(lane: SectionDraft, piece: MarkedSentence, meter: Meter) -> list[Spot]:
    """Every place behind a fact that does not part it from what is said about it.

    Only places behind all coined words: what is placed stays where it is. A paragraph has one name.
    """
    mark = piece.marks[0]
    before = meter.estimate(" " + piece.text[: mark.start].rstrip())
    found: list[Spot] = []
    tokens = 0
    for number, node in enumerate(lane.nodes):
        told = taken = False
        for index, here in enumerate(node.pieces):
            tokens += meter.estimate((PARAGRAPH_BREAK if not index and number else " ") + here.text)
            kinds = {mark.kind for mark in here.marks}
            told |= "fact" in kinds
            if kinds & {"coin", "use"}:
                found.clear()
                taken = True
            last = index + 1 == len(node.pieces) or node.pieces[index + 1].marks
            if told and last and not taken:
                found.append(Spot(number, index + 1, tokens + before))
    return found


def padded(found: Sequence[Spot], meter: Meter) -> list[Spot]:
    """The same places with one sentence more before the word."""
    return [
        Spot(spot.node, spot.piece, spot.token + meter.estimate(" " + pad), (MarkedSentence(pad),))
        for spot in found
        for pad in PADS
    ]


def insert(lane: SectionDraft, spot: Spot, piece: MarkedSentence) -> Node:
    node = lane.nodes[spot.node]
    node.pieces[spot.piece : spot.piece] = [*spot.pads, piece]
    return node


def remove(lane: SectionDraft, spot: Spot) -> None:
    del lane.nodes[spot.node].pieces[spot.piece : spot.piece + len(spot.pads) + 1]


def pairs_with_lag(
    owner: Sequence[Spot], receiver: Sequence[Spot], lag: int
) -> list[tuple[Spot, Spot]]:
    """The places for both ends that should be `lag` blocks apart."""
    return [
        (first, second)
        for first in owner
        for second in receiver
        if second.token // BLOCK - first.token // BLOCK == lag
    ]


def to_barrier(token: int) -> int:
    """Tokens that follow in the same block."""
    return BLOCK - 1 - token % BLOCK


def measured_lag(
    owner: SectionDraft,
    receiver: SectionDraft,
    mark_id: str,
    meter: Meter,
    barrier_tokens: int = BLOCK - 1,
) -> int | None:
    """Blocks from the owner's words to the receiver's, or None if no note can carry them."""
    coined = _tokens(owner, "coin", mark_id, meter)
    used = _tokens(receiver, "use", mark_id, meter)
    if coined is None or used is None:
        return None
    (_, last, total), (first, end, _) = coined, used
    published = (last // BLOCK + 1) * BLOCK <= total and to_barrier(last) <= barrier_tokens
    lag = first // BLOCK - last // BLOCK
    # A block's first token is chosen before the notes of the block before it are read (§5.2).
    told = lag > 1 or (lag == 1 and first % BLOCK > 0)
    return lag if published and told and end // BLOCK - last // BLOCK <= WINDOW else None


def _tokens(
    lane: SectionDraft, kind: str, mark_id: str, meter: Meter
) -> tuple[int, int, int] | None:
    """First and last token of a mark, and the number of tokens of the section."""
    mark = next((m for _, m in lane.marks() if m.kind == kind and m.id == mark_id), None)
    if mark is None:
        return None
    spans = meter.spans(lane.text)
    inside = [i for i, (a, b) in enumerate(spans) if a < mark.end and b > mark.start]
    return (inside[0], inside[-1], len(spans)) if inside else None


def place(
    stream: random.Random,
    ends: tuple[SectionDraft, SectionDraft],
    pieces: tuple[MarkedSentence, MarkedSentence],
    lags: Sequence[int],
    meter: Meter,
    *,
    barrier_tokens: int = BLOCK - 1,
    owner_placed: bool = False,
) -> tuple[Node, Node] | None:
    """Insert both sentences so that their lag is one of `lags`, the first if it can be had.

    The owner's word ends at most `barrier_tokens` before its block does. With `owner_placed` the
    owner's words already stand in its section and only the use is inserted.
    """
    owner, receiver = ends
    mark_id = pieces[1].marks[0].id
    uses = spots(receiver, pieces[1], meter)
    if owner_placed:
        coined = _tokens(owner, "coin", mark_id, meter)
        assert coined is not None
        starts = [Spot(0, 0, coined[1])]
    else:
        starts = spots(owner, pieces[0], meter)
    for lag, pad in product(lags, (False, True)):
        firsts = padded(starts, meter) if pad and not owner_placed else starts
        near = [spot for spot in firsts if to_barrier(spot.token) <= barrier_tokens + 1]
        found = pairs_with_lag(near, padded(uses, meter) if pad else uses, lag)
        for first, second in stream.sample(found, min(4, len(found))):
            if not owner_placed:
                insert(owner, first, pieces[0])
            target = insert(receiver, second, pieces[1])
            if measured_lag(owner, receiver, mark_id, meter, barrier_tokens) == lag:
                return owner.nodes[first.node], target
            remove(receiver, second)
            if not owner_placed:
                remove(owner, first)
    return None
