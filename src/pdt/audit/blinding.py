"""What a person may not see, and how it is kept from them.

Ids are keyed hashes, another one for every seat and showing, so that they tell nothing and two
annotators cannot compare them. The same key orders each seat's items, draws those that return, and
those that are adjudicated although two people agree. It is published when the audit closes, and
every draw can then be made again.

Paper: §7.2.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from pdt.audit.answers import Purpose
from pdt.audit.plan import AuditPlan

KEY_BYTES = 32
SOONEST = 0.1
"""The share of a seat's items that stand between an item and its return, at the least."""
LATEST = 0.75
"""An item behind this share of the order does not return: too little would follow it."""


class Blind:
    """The key of one audit, and everything that is drawn with it."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def ticket(self, holder: str, purpose: Purpose, number: int, round_: int = 0) -> str:
        """The opaque id of one showing."""
        return self._hash("ticket", holder, purpose.value, number, round_).hex()[:32]

    def fraction(self, *parts: object) -> float:
        """A number from 0 to 1 that only the key knows beforehand."""
        return int.from_bytes(self._hash(*parts)[:6], "big") / 2**48

    def is_checked(self, item: int, share: float) -> bool:
        """Is it adjudicated although two annotators agree?"""
        return self.fraction("check", item) < share

    def seats_of(self, item: int, seats: int) -> tuple[int, int]:
        """The two seats that judge an item, the lower one first."""
        pairs = list(combinations(range(seats), 2))
        first, second = pairs[int(self.fraction("seats", item) * len(pairs))]
        return first, second

    def _hash(self, *parts: object) -> bytes:
        words = "\x1f".join(map(str, parts))
        return hmac.new(self.key, words.encode(), hashlib.sha256).digest()


@dataclass(frozen=True)
class Dealt:
    """One showing in a seat's order."""

    ticket: str
    item: int
    purpose: Purpose


def seat_holder(seat: int) -> str:
    return f"seat {seat}"


def deal(blind: Blind, plan: AuditPlan, items: Sequence[int], seat: int) -> list[Dealt]:
    """What one seat judges, in its own order, with the items that return to it."""
    mine = [item for item in items if seat in blind.seats_of(item, plan.seats)]
    order = sorted(mine, key=lambda item: blind.fraction("order", seat, item))
    placed = [(float(place), item, Purpose.JUDGMENT) for place, item in enumerate(order)]
    early = sorted(
        range(int(len(order) * LATEST)),
        key=lambda place: blind.fraction("repeat", seat, order[place]),
    )
    for place in early[: round(len(order) * plan.repeat_share)]:
        soonest = place + len(order) * SOONEST
        later = blind.fraction("return", seat, order[place])
        placed.append((soonest + later * (len(order) - soonest), order[place], Purpose.REPEAT))
    placed.sort(key=lambda row: row[0])
    holder = seat_holder(seat)
    return [Dealt(blind.ticket(holder, why, item), item, why) for _, item, why in placed]
