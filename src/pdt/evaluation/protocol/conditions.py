"""The conditions of the protocol as data: whose weights, which plan, which edits.

A condition edits plans, notes or the who-may-read table and nothing else; the model and the loop do
not know which one runs.

Paper: §7.1, §7.3, Table 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pdt.errors import UsageError
from pdt.evaluation.alterations.alteration import Alteration
from pdt.evaluation.alterations.deal import DealAnew
from pdt.evaluation.alterations.names import Rename
from pdt.evaluation.alterations.requests import AskByHand
from pdt.evaluation.alterations.sources import AddIrrelevant, AddSecondDocument, ShuffleParagraphs
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.protocol.edits import (
    DocumentEdit,
    DropDrawnNode,
    MoveOwner,
    MutateOwner,
    TransplantNode,
)
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
class Which:
    """The documents that a condition is run on, by what they are."""

    told: bool = False
    """Only those whose request tells the division; no planner could know the others."""
    few: bool = False
    """Only the first ones: `few_documents` of the settings."""
    nodes: bool = False
    """Only those with a node to transplant."""

    @property
    def name(self) -> str:
        chosen = [name for name in ("few", "told", "nodes") if getattr(self, name)]
        return "-".join(chosen) or "all"

    def of(self, documents: Sequence[HeldOutDocument], *, few: int) -> list[HeldOutDocument]:
        found = [
            document
            for document in documents
            if (document.told or not self.told)
            and (not self.nodes or document.transplant is not None)
        ]
        return found[:few] if self.few else found


ALL, TOLD, FEW = Which(), Which(told=True), Which(few=True)
FEW_TOLD, FEW_WITH_NODES = Which(told=True, few=True), Which(few=True, nodes=True)


@dataclass(frozen=True)
class Condition:
    """One way to run the model over the held-out documents."""

    name: str
    title: str
    weights: Weights = Weights.BUS
    oracle: bool = False
    """The teacher's plans, whatever plan the evaluation is about."""
    edits: tuple[Intervention | DocumentEdit, ...] = ()
    which: Which = ALL
    alters: Alteration | None = None
    """The documents themselves are others: what was changed before anything was read."""
    sibling_opening: bool = False
    """Every lane is made to begin with the first sentence of the next lane's section."""

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
LEARNED = Condition("learned", "learned plan", which=TOLD)
ZERO = Condition("zero", "zero plan", edits=(ZeroPlan(),), which=TOLD)
SWAP = Condition("swap", "D1/D2 swap", edits=(SwapPlans(0, 1),), which=TOLD)
NO_DYNAMIC = Condition("no_dynamic", "notes removed", edits=(RemoveNotes(),))
SELF_ONLY = Condition("self_only", "self-only", weights=Weights.SELF_ONLY)
SELF_ONLY_FLOOR = Condition(
    "self_only_no_dynamic",
    "self-only, notes removed",
    weights=Weights.SELF_ONLY,
    edits=(RemoveNotes(),),
)
MUTATED = Condition("mutated", "one producer's codes", edits=(MutateOwner(),), which=FEW)
EXCHANGED = Condition("exchanged", "another document's notes", edits=(ExchangeNotes(),), which=FEW)
SENDERS = Condition("senders", "two senders exchanged", edits=(MoveOwner(),), which=FEW)
SCRAMBLED = Condition("scrambled", "scrambled directions", edits=(ScrambleNotes(),), which=FEW)
CLOSED = Condition("closed_gate", "closed note gate", edits=(CloseNoteGate(),), which=FEW)
CONTROLS = (MUTATED, EXCHANGED, SENDERS, SCRAMBLED, CLOSED)
"""The destructive controls of §7.3, measured less finely than what they are held to."""

DEALT_ANEW = Condition(
    "dealt_anew", "facts dealt anew", oracle=True, alters=DealAnew(), which=FEW_TOLD
)
TRANSPLANT = Condition(
    "transplant", "one node transplanted", oracle=True, edits=(TransplantNode(),),
    which=FEW_WITH_NODES,
)  # fmt: skip
DROPPED = Condition(
    "dropped", "one node dropped", oracle=True, edits=(DropDrawnNode(),), which=FEW_WITH_NODES
)
ZERO_FROM = {
    block: Condition(
        f"zero_from_{block}", f"plan zeroed from block {block}", oracle=True,
        edits=(ZeroPlan(from_block=block),), which=FEW,
    )
    for block in (1, 2)
}  # fmt: skip
OPENING = Condition(
    "opening", "a sibling's first sentence forced", oracle=True, sibling_opening=True, which=FEW
)
RANGE = (
    Condition("irrelevant", "irrelevant paragraphs", alters=AddIrrelevant(), which=FEW_TOLD),
    Condition("second", "a second document's facts", alters=AddSecondDocument(), which=FEW_TOLD),
    Condition("shuffled", "shuffled paragraphs", alters=ShuffleParagraphs(), which=FEW_TOLD),
    Condition("renamed", "unseen names", alters=Rename(), which=FEW_TOLD),
    Condition("by_hand", "requests by a person", alters=AskByHand(), which=FEW_TOLD),
)
"""The same facts in another source or asked for in other words, with the plan that follows (H6)."""
HARDER = (DEALT_ANEW, TRANSPLANT, DROPPED, *ZERO_FROM.values(), OPENING, *RANGE)
"""What Table 3 cannot see: a lane that reads its plan node by node, and far from its corpus."""

GENERATED = (ORACLE, LEARNED, ZERO, SWAP, NO_DYNAMIC, SELF_ONLY, *CONTROLS, *HARDER)
"""Free generation."""
BUS = Condition("bus", "bus")
SCORED = (BUS, NO_DYNAMIC, SELF_ONLY, SELF_ONLY_FLOOR, *CONTROLS)
"""Teacher forcing (Eq. 10)."""
COINED = (BUS, NO_DYNAMIC, SELF_ONLY, *CONTROLS)
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
