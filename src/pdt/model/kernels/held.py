"""What `decode.c` is told of one frontier: where its caches, its plans and its notes lie."""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pdt.model.cache import SuffixBuffer
from pdt.model.gated_read import GatedRead, ReadMemory
from pdt.model.kernels.structs import NOTES, PLAN, Document, Held, Memory
from pdt.model.rope import rotary

if TYPE_CHECKING:
    from pdt.model.pdt import Frontier, ParallelDecoder


Counts = Sequence[Sequence[int]]
"""Tokens by document and lane."""


class HeldFrontier:
    """The documents of one frontier, ready to take part in rounds.

    Caches do not move, so addresses are taken once; a barrier sets the notes anew, and an edit of
    a plan the plans. The tensors behind every address are kept alive here.
    """

    def __init__(self, model: "ParallelDecoder", frontier: "Frontier") -> None:
        self.frontier = frontier
        self._model = model
        self._buffers = [
            memory
            for memory in (*frontier.lower, *frontier.upper)
            if isinstance(memory, SuffixBuffer)
        ]
        self.documents = len(frontier.lengths_B)
        shape = model.config.trunk.shape
        first = self._buffers[0]
        # The angles of every position the lanes can reach, [B, capacity, X].
        positions = frontier.lengths_B[:, None] + torch.arange(first.capacity)
        turn = rotary(shape.rope, shape.head_width, positions[:, None], torch.float32)
        self._angles = [turn.cos.contiguous(), turn.sin.contiguous()]
        self._documents = (Document * self.documents)()
        for b, slot in enumerate(self._documents):
            slot.prompt_tokens, slot.capacity = first.prompt.length, first.capacity
            slot.prompt_length = int(frontier.lengths_B[b])
            slot.cos, slot.sin = (angles[b].data_ptr() for angles in self._angles)
        self.longest = first.prompt.length + first.capacity
        self._held = [(Held * self.documents)() for _ in self._buffers]
        for row, memory in zip(self._held, self._buffers, strict=True):
            for b, slot in enumerate(row):
                slot.prompt_k = memory.prompt.k[b].data_ptr()
                slot.prompt_v = memory.prompt.v[b].data_ptr()
                slot.suffix_k, slot.suffix_v = memory.k[b].data_ptr(), memory.v[b].data_ptr()
        self._upper = self._held[model.config.lanes.fork_layer :]
        self._plans: object = None
        self._notes: object = None
        self._kept: list[list[Tensor]] = [[], []]

    def addresses(self) -> tuple[list[int], list[list[int]]]:
        """Of every document, and by layer of what every document holds of it."""
        return _addresses(self._documents), [_addresses(row) for row in self._held]

    def take(self, counts_BK: Counts, notes: Sequence[ReadMemory] | None) -> None:
        """Make ready for so many more tokens, under the plans and notes in force now."""
        self.frontier.taken.check_room(self._buffers[0].capacity, counts_BK)
        if self.frontier.plan_reads is not self._plans:
            self._plans = self.frontier.plan_reads
            self._set(PLAN, self.frontier.plan_reads)
        if notes is not self._notes:
            self._notes = notes
            self._set(NOTES, notes)

    def _set(self, kind: int, reads: Sequence[ReadMemory] | None) -> None:
        kept: list[Tensor] = []
        for index, row in enumerate(self._upper):
            for b, slot in enumerate(row):
                if reads is None:
                    slot.read[kind].slots = 0
                else:
                    _set_memory(slot.read[kind], reads[index], b, self._gate(kind, index), kept)
        self._kept[kind] = kept

    def _gate(self, kind: int, index: int) -> float:
        layer = self._model.lane_layers[index]
        module: GatedRead = layer.plan_kv if kind == PLAN else layer.snc
        gate = float(torch.sigmoid(module.residual_gate))
        return gate if kind == PLAN else gate * float(layer.snc.inner_gate)


def _set_memory(slot: Memory, read: ReadMemory, b: int, gate: float, kept: list[Tensor]) -> None:
    parts = [
        part[b].detach().contiguous()
        for part in (read.k, read.v, read.readable_BKS.to(torch.uint8))
    ]
    kept += parts
    slot.k, slot.v, slot.readable = (part.data_ptr() for part in parts)
    slot.slots, slot.gate = read.k.shape[3], read.gate * gate


def _addresses(row: ctypes.Array) -> list[int]:  # type: ignore[type-arg]
    size = ctypes.sizeof(row._type_)
    return [ctypes.addressof(row) + b * size for b in range(len(row))]
