"""The conditions of the protocol as data: whose weights, which plan, which edits.

A condition edits plans, notes or the who-may-read table and nothing else; the model and the loop do
not know which one runs.

Paper: §7.1, §7.3, Table 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pdt.errors import UsageError
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.protocol.edits import DocumentEdit, MutateOwner
from pdt.generation.interventions import (
    CloseNoteGate,
    ExchangeNotes,
    Intervention,
    RemoveNotes,
    ScrambleNotes,
    SwapPlans,
    ZeroPlan,
)


class Weights(StrEnum):
    """Which checkpoint runs."""

    BUS = "bus"
    SELF_ONLY = "self_only"


@dataclass(frozen=True)
class Condition:
    """One way to run the model over the held-out documents."""

    name: str
    title: str
    weights: Weights = Weights.BUS
    oracle: bool = False
    """The teacher's plans, whatever plan the evaluation is about."""
    edits: tuple[Intervention | DocumentEdit, ...] = ()

    def edits_on(
        self, documents: Sequence[HeldOutDocument], lane_of_plan: Sequence[Sequence[int]]
    ) -> list[Intervention]:
        """Its edits for these documents, whose teacher outlines stand on these lanes."""
        return [
            edit if isinstance(edit, Intervention) else edit.on(documents, lane_of_plan)
            for edit in self.edits
        ]

    def lane_after(self, lane: int) -> int:
        """Where the plan of a physical lane stands under this condition."""
        for edit in self.edits:
            if isinstance(edit, Intervention):
                lane = edit.lane_after(lane)
        return lane


ORACLE = Condition("oracle", "oracle plan", oracle=True)
LEARNED = Condition("learned", "learned plan")
ZERO = Condition("zero", "zero plan", edits=(ZeroPlan(),))
SWAP = Condition("swap", "D1/D2 swap", edits=(SwapPlans(0, 1),))
NO_DYNAMIC = Condition("no_dynamic", "notes removed", edits=(RemoveNotes(),))
SELF_ONLY = Condition("self_only", "self-only", weights=Weights.SELF_ONLY)
SELF_ONLY_FLOOR = Condition(
    "self_only_no_dynamic",
    "self-only, notes removed",
    weights=Weights.SELF_ONLY,
    edits=(RemoveNotes(),),
)
MUTATED = Condition("mutated", "one producer's codes", edits=(MutateOwner(),))
EXCHANGED = Condition("exchanged", "another document's notes", edits=(ExchangeNotes(),))
SCRAMBLED = Condition("scrambled", "scrambled directions", edits=(ScrambleNotes(),))
CLOSED = Condition("closed_gate", "closed note gate", edits=(CloseNoteGate(),))

GENERATED = (
    ORACLE, LEARNED, ZERO, SWAP, NO_DYNAMIC, SELF_ONLY, MUTATED, EXCHANGED, SCRAMBLED, CLOSED,
)  # fmt: skip
"""Free generation."""
BUS = Condition("bus", "bus")
SCORED = (BUS, NO_DYNAMIC, SELF_ONLY, SELF_ONLY_FLOOR, MUTATED, EXCHANGED, SCRAMBLED, CLOSED)
"""Teacher forcing (Eq. 10)."""
COINED = (BUS, NO_DYNAMIC, SELF_ONLY, MUTATED, EXCHANGED, SCRAMBLED, CLOSED)
"""Free generation in which owners coin a word that was drawn for them."""


def chosen_conditions(
    names: Sequence[str] | None, *, with_self_only: bool, with_learned: bool
) -> tuple[Condition, ...]:
    """The conditions that can run here, all or those named."""
    known = {condition.name: condition for condition in GENERATED}
    for name in names or ():
        if name not in known:
            raise UsageError(f"There is no condition {name!r}. Conditions: {', '.join(known)}.")
        if name == SELF_ONLY.name and not with_self_only:
            raise UsageError("The condition self_only needs its own checkpoint: --self-only DIR.")
        if name == LEARNED.name and not with_learned:
            raise UsageError("The condition learned needs learned plans: leave out --plan oracle.")
    return tuple(
        condition
        for condition in GENERATED
        if (not names or condition.name in names)
        and (with_learned or condition is not LEARNED)
        and (with_self_only or condition is not SELF_ONLY)
    )


def along_with(
    chosen: Sequence[Condition], conditions: Sequence[Condition]
) -> tuple[Condition, ...]:
    """Of `conditions` the intact bus and what was chosen; self-only brings its own floor."""
    names = {BUS.name, *(condition.name for condition in chosen)}
    if SELF_ONLY in chosen:
        names.add(SELF_ONLY_FLOOR.name)
    return tuple(condition for condition in conditions if condition.name in names)
