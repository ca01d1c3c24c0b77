"""Interventions: edits of values that the loop reads, each from a block boundary on.

A plan, a bus and a who-may-read table are values; an intervention returns an edited one. The model
and the loop do not know which is in force, so what it changes is what it says and nothing else.

Paper: §7.1, §7.3.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from pdt.errors import UsageError, require_type
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.bus import NoteBlock, NotesBus
from pdt.parse import shown

Decode = Callable[[Tensor], Tensor]
"""Codes → vectors: the model's codebooks."""


@dataclass(frozen=True)
class Intervention:
    """The identity; each kind overrides the value it edits."""

    from_block: int = field(default=0, kw_only=True)
    """First block that is written under the edit."""

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        return plans

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        return bus

    def edit_may_read(self, may_read_KK: Tensor) -> Tensor:
        return may_read_KK

    def lane_after(self, lane: int) -> int:
        """Where the plan of a lane stands under the edit."""
        return lane

    def lanes(self) -> tuple[int, ...]:
        """Lane indices it names, to be checked against the model."""
        return ()

    def nodes(self) -> tuple[int, ...]:
        """Plan nodes it names, likewise."""
        return ()


@dataclass(frozen=True)
class SwapPlans(Intervention):
    """Two lanes exchange their outlines, and with them their places in the presentation order."""

    a: int = 0
    b: int = 1

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        lane_of_new = list(range(plans.nodes_BKNP.shape[1]))
        lane_of_new[self.a], lane_of_new[self.b] = self.b, self.a
        return plans.select(lane_of_new)

    def lane_after(self, lane: int) -> int:
        return {self.a: self.b, self.b: self.a}.get(lane, lane)

    def lanes(self) -> tuple[int, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class ZeroPlan(Intervention):
    """The content of every node becomes zero; which nodes exist stays."""

    lane: int | None = None

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        nodes = plans.nodes_BKNP.clone()
        nodes[:, slice(None) if self.lane is None else self.lane] = 0
        return replace(plans, nodes_BKNP=nodes)

    def lanes(self) -> tuple[int, ...]:
        return () if self.lane is None else (self.lane,)


@dataclass(frozen=True)
class ReplaceNode(Intervention):
    """One plan node becomes a copy of another, which may be in another lane's outline."""

    lane: int = 0
    node: int = 0
    from_lane: int = 0
    from_node: int = 0

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        nodes, valid = plans.nodes_BKNP.clone(), plans.valid_BKN.clone()
        nodes[:, self.lane, self.node] = plans.nodes_BKNP[:, self.from_lane, self.from_node]
        valid[:, self.lane, self.node] = plans.valid_BKN[:, self.from_lane, self.from_node]
        return replace(plans, nodes_BKNP=nodes, valid_BKN=valid)

    def lanes(self) -> tuple[int, ...]:
        return (self.lane, self.from_lane)

    def nodes(self) -> tuple[int, ...]:
        return (self.node, self.from_node)


@dataclass(frozen=True)
class DropNode(Intervention):
    """One plan node stops existing."""

    lane: int = 0
    node: int = 0

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        valid = plans.valid_BKN.clone()
        valid[:, self.lane, self.node] = False
        return replace(plans, valid_BKN=valid)

    def lanes(self) -> tuple[int, ...]:
        return (self.lane,)

    def nodes(self) -> tuple[int, ...]:
        return (self.node,)


@dataclass(frozen=True)
class RemoveNotes(Intervention):
    """Nobody reads the notes of one producer, or of any."""

    producer: int | None = None

    def edit_may_read(self, may_read_KK: Tensor) -> Tensor:
        edited = may_read_KK.clone()
        edited[:, slice(None) if self.producer is None else self.producer] = False
        return edited

    def lanes(self) -> tuple[int, ...]:
        return () if self.producer is None else (self.producer,)


@dataclass(frozen=True)
class RemoveNote(Intervention):
    """Nobody reads one producer's note of one block."""

    producer: int = 0
    block: int = 0

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        if self.block >= len(bus.blocks):
            return bus
        note = bus.blocks[self.block]
        published = note.published_BK.clone()
        published[:, self.producer] = False
        return _with_block(bus, self.block, replace(note, published_BK=published))

    def lanes(self) -> tuple[int, ...]:
        return (self.producer,)


@dataclass(frozen=True)
class BlockReader(Intervention):
    """One lane reads no notes; the others go on."""

    reader: int = 0

    def edit_may_read(self, may_read_KK: Tensor) -> Tensor:
        edited = may_read_KK.clone()
        edited[self.reader] = False
        return edited

    def lanes(self) -> tuple[int, ...]:
        return (self.reader,)


@dataclass(frozen=True)
class CloseNoteGate(Intervention):
    """The note gate of every layer is zero: lanes read, and what they read adds nothing."""

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        return replace(bus, gate=0.0)


@dataclass(frozen=True)
class MutateCode(Intervention):
    """One producer's note of one block carries other codes: given, or each half a book away."""

    producer: int = 0
    block: int = 0
    codes_M: tuple[int, ...] | None = None
    book_size: int | None = None
    """C, filled in when the intervention is bound to a model."""

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        if self.block >= len(bus.blocks):
            return bus
        note = bus.blocks[self.block]
        codes = note.codes_BKM.clone()
        if self.codes_M is not None:
            codes[:, self.producer] = torch.tensor(self.codes_M)
        else:
            assert self.book_size is not None
            codes[:, self.producer] = (
                codes[:, self.producer] + self.book_size // 2
            ) % self.book_size
        return _with_block(
            bus, self.block, replace(note, codes_BKM=codes, vectors_BKE=decode(codes))
        )

    def lanes(self) -> tuple[int, ...]:
        return (self.producer,)


@dataclass(frozen=True)
class MutateProducers(Intervention):
    """In each document every note of one producer carries other codes, each half a book away."""

    producer_B: tuple[int, ...] = ()
    """The producer of each document of the batch."""
    book_size: int | None = None
    """C, filled in when the intervention is bound to a model."""

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        return replace(bus, blocks=tuple(self._mutated(note, decode) for note in bus.blocks))

    def _mutated(self, note: NoteBlock, decode: Decode) -> NoteBlock:
        assert self.book_size is not None
        if len(self.producer_B) != len(note.codes_BKM):
            raise UsageError(
                f"{len(self.producer_B)} producers are named for {len(note.codes_BKM)} documents."
            )
        row = torch.arange(len(self.producer_B))
        codes = note.codes_BKM.clone()
        mutated = codes[row, self.producer_B] + self.book_size // 2
        codes[row, self.producer_B] = mutated % self.book_size
        return replace(note, codes_BKM=codes, vectors_BKE=decode(codes))

    def lanes(self) -> tuple[int, ...]:
        return self.producer_B


@dataclass(frozen=True)
class ExchangeNotes(Intervention):
    """Every document reads the notes of the next document of the batch."""

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        def moved(note: NoteBlock) -> NoteBlock:
            if len(note.codes_BKM) < 2:
                raise UsageError("exchange-notes needs a batch of at least two documents.")
            return NoteBlock(
                *(x.roll(-1, dims=0) for x in (note.codes_BKM, note.vectors_BKE, note.published_BK))
            )

        return replace(bus, blocks=tuple(moved(note) for note in bus.blocks))


@dataclass(frozen=True)
class ExchangeProducers(Intervention):
    """Two lanes' notes stand at each other's address; what they say is untouched."""

    a: int = 0
    b: int = 1

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        lane_of_new = list(range(bus.lanes))
        lane_of_new[self.a], lane_of_new[self.b] = self.b, self.a

        def moved(note: NoteBlock) -> NoteBlock:
            return NoteBlock(
                note.codes_BKM[:, lane_of_new],
                note.vectors_BKE[:, lane_of_new],
                note.published_BK[:, lane_of_new],
            )

        return replace(bus, blocks=tuple(moved(note) for note in bus.blocks))

    def lanes(self) -> tuple[int, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class ScrambleNotes(Intervention):
    """Every note keeps its length and points in a random direction."""

    seed: int = 0

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        return replace(
            bus, blocks=tuple(self._scrambled(i, note) for i, note in enumerate(bus.blocks))
        )

    def _scrambled(self, block: int, note: NoteBlock) -> NoteBlock:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + block)
        # One direction a lane, the same in every document: the batch must not change a lane.
        random = torch.randn(note.vectors_BKE.shape[1:], generator=generator)
        direction = random / random.norm(dim=-1, keepdim=True)
        norms = note.vectors_BKE.norm(dim=-1, keepdim=True)
        return replace(note, vectors_BKE=direction.to(norms) * norms)


def parse_intervention(text: str) -> Intervention:
    """`NAME[:ARGUMENTS][@BLOCK]`, as in `swap-plans:0,1` or `remove-notes:2@4`."""
    require_type(text, str, "The intervention", "a text such as swap-plans:0,1")
    match = re.fullmatch(r"([a-z-]+)(?::([^@]*))?(?:@(\d+))?", text.strip())
    if not match or match[1] not in _GRAMMAR:
        raise UsageError(
            f"There is no intervention {text!r}. Known:\n"
            + "\n".join(f"  {form}" for form in INTERVENTION_FORMS)
        )
    name, arguments, block = match[1], match[2] or "", int(match[3] or 0)
    pattern, build = _GRAMMAR[name]
    parts = re.fullmatch(pattern, arguments)
    if parts is None:
        shapes = (form.split(maxsplit=1) for form in INTERVENTION_FORMS)
        form, meaning = next(shape for shape in shapes if re.split(r"[^a-z-]", shape[0])[0] == name)
        raise UsageError(f"{text!r} is not of the form {form} ({meaning}).")
    return build(block, *parts.groups())


def as_interventions(
    given: str | Intervention | Iterable[str | Intervention],
) -> list[Intervention]:
    """Interventions from values, from texts such as `swap-plans:0,1`, or from one of either."""
    several = [given] if isinstance(given, str | Intervention) else given
    found: list[Intervention] = []
    for one in several:
        if not isinstance(one, str | Intervention):
            raise UsageError(
                f"{shown(one)} is {type(one).__name__}, expected an intervention.\n"
                'Give a text such as "swap-plans:0,1", or a value such as pdt.SwapPlans(0, 1).'
            )
        found.append(parse_intervention(one) if isinstance(one, str) else one)
    return found


INTERVENTION_FORMS = (
    "swap-plans:LANE,LANE[@BLOCK]               two lanes exchange their plans",
    "zero-plan[:LANE][@BLOCK]                   plan content becomes zero",
    "replace-node:LANE.NODE=LANE.NODE[@BLOCK]   one plan node becomes a copy of another",
    "drop-node:LANE.NODE[@BLOCK]                one plan node stops existing",
    "remove-notes[:PRODUCER][@BLOCK]            notes of one lane, or all, are not read",
    "remove-note:PRODUCER@BLOCK                 that lane's note of that block is not read",
    "mutate-code:PRODUCER[=C,C,…]@BLOCK         that lane's note of that block carries other codes",
    "exchange-notes[@BLOCK]                     documents read each other's notes",
    "exchange-producers:LANE,LANE[@BLOCK]       two lanes' notes stand at each other's address",
    "scramble-notes[:SEED][@BLOCK]              notes point elsewhere at the same length",
    "close-gate[@BLOCK]                         the note gate is zero",
    "block-reader:LANE[@BLOCK]                  one lane reads no notes",
)


def _optional_int(text: str | None) -> int | None:
    return int(text) if text else None


def _mutation(block: int, producer: str, codes: str | None) -> MutateCode:
    given = tuple(int(code) for code in codes.split(",")) if codes else None
    return MutateCode(int(producer), block, given)


_GRAMMAR: dict[str, tuple[str, Callable[..., Intervention]]] = {
    "swap-plans": (r"(\d+),(\d+)", lambda at, a, b: SwapPlans(int(a), int(b), from_block=at)),
    "zero-plan": (r"(\d*)", lambda at, lane: ZeroPlan(_optional_int(lane), from_block=at)),
    "replace-node": (
        r"(\d+)\.(\d+)=(\d+)\.(\d+)",
        lambda at, *numbers: ReplaceNode(*(int(n) for n in numbers), from_block=at),
    ),
    "drop-node": (
        r"(\d+)\.(\d+)",
        lambda at, lane, node: DropNode(int(lane), int(node), from_block=at),
    ),
    "remove-notes": (r"(\d*)", lambda at, lane: RemoveNotes(_optional_int(lane), from_block=at)),
    "remove-note": (r"(\d+)", lambda at, producer: RemoveNote(int(producer), at)),
    "mutate-code": (r"(\d+)(?:=(\d+(?:,\d+)*))?", _mutation),
    "exchange-notes": (r"", lambda at: ExchangeNotes(from_block=at)),
    "exchange-producers": (
        r"(\d+),(\d+)",
        lambda at, a, b: ExchangeProducers(int(a), int(b), from_block=at),
    ),
    "scramble-notes": (r"(\d*)", lambda at, seed: ScrambleNotes(int(seed or 0), from_block=at)),
    "close-gate": (r"", lambda at: CloseNoteGate(from_block=at)),
    "block-reader": (r"(\d+)", lambda at, lane: BlockReader(int(lane), from_block=at)),
}


def edited_bus(
    bus: NotesBus, interventions: Sequence[Intervention], model: ParallelDecoder
) -> NotesBus:
    """The bus as the lanes read it under these edits; what was committed stays as it is."""
    for intervention in interventions:
        bus = intervention.edit_bus(bus, model.note_writer.vq.decode)
    return bus


def fitted_to(interventions: Sequence[Intervention], model: ParallelDecoder) -> list[Intervention]:
    """Check lanes and codes against the model, before anything runs."""
    lanes, notes, nodes = model.config.lanes.count, model.config.notes, model.config.planner.nodes
    bound: list[Intervention] = []
    for intervention in interventions:
        for lane in intervention.lanes():
            require_type(lane, int, f"A lane of {intervention}", "its number")
            if not 0 <= lane < lanes:
                raise UsageError(
                    f"Lane {lane} does not exist; the model has lanes 0 to {lanes - 1}."
                )
        if min(intervention.from_block, getattr(intervention, "block", 0)) < 0:
            raise UsageError(f"{intervention} begins before the first block; blocks count from 0.")
        for node in intervention.nodes():
            require_type(node, int, f"A plan node of {intervention}", "its number")
            if not 0 <= node < nodes:
                raise UsageError(f"Plan node {node} does not exist; a plan has 0 to {nodes - 1}.")
        if isinstance(intervention, MutateCode):
            codes = intervention.codes_M
            if codes is not None and (
                len(codes) != notes.codebooks or any(not 0 <= c < notes.codes for c in codes)
            ):
                raise UsageError(
                    f"A note is {notes.codebooks} codes of 0 to {notes.codes - 1}, got {codes}."
                )
            intervention = replace(intervention, book_size=notes.codes)
        if isinstance(intervention, MutateProducers):
            intervention = replace(intervention, book_size=notes.codes)
        bound.append(intervention)
    return bound


def _with_block(bus: NotesBus, block: int, note: NoteBlock) -> NotesBus:
    blocks = list(bus.blocks)
    blocks[block] = note
    return replace(bus, blocks=tuple(blocks))
