"""The notes bus: a value that grows by one whole block at a time.

Committing returns a new bus; nothing is edited in place. So "before the barrier" and "after the
barrier" are two values, and a lane in block b can only be handed the one that ends at b - 1.

Paper: §3.5, Fig. 3.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from pdt.errors import BusError


@dataclass(frozen=True)
class NoteBlock:
    """What all lanes published at the end of one block."""

    codes_BKM: Tensor
    vectors_BKE: Tensor
    published_BK: Tensor
    """False for a lane that did not complete the block (it had ended)."""
    written_BKE: Tensor | None = None
    """What was quantized, for the losses (§5.2); no receiver reads it."""

    def document(self, number: int) -> "NoteBlock":
        """The notes of one document, as a batch of one; what receivers read, and nothing else."""
        row = slice(number, number + 1)
        return NoteBlock(self.codes_BKM[row], self.vectors_BKE[row], self.published_BK[row])


class NoteWindow(NamedTuple):
    """The notes visible in one block, with their headers. Q = blocks in the window × lanes."""

    vectors_BQE: Tensor
    producer_Q: Tensor
    lag_Q: Tensor
    readable_BKQ: Tensor
    gate: float = 1.0
    """A factor on the gate of whoever reads it."""


@dataclass(frozen=True)
class NotesBus:
    """Every note committed so far, oldest block first."""

    lanes: int
    blocks: tuple[NoteBlock, ...] = ()
    gate: float = 1.0
    """A factor on the readers' gates; an intervention closes them with 0."""

    def commit(self, block: int, notes: NoteBlock) -> "NotesBus":
        """The bus after `block`'s barrier: all lanes together, each block once, in order."""
        if block < len(self.blocks):
            raise BusError(
                f"Block {block} is already committed; the bus ends at {len(self.blocks) - 1}.\n"
                "A note is written once. To change it, build an edited bus (an intervention)."
            )
        if block > len(self.blocks):
            raise BusError(
                f"Block {block} cannot be committed before block {len(self.blocks)}.\n"
                "Blocks commit in order, one barrier each (§3.5)."
            )
        for name in ("codes_BKM", "vectors_BKE", "published_BK"):
            lanes = getattr(notes, name).shape[1]
            if lanes != self.lanes:
                raise BusError(
                    f"Block {block}: {name} holds {lanes} lanes, the bus has {self.lanes}.\n"
                    "All lanes commit together or none does; mark an ended lane in published_BK."
                )
        return replace(self, blocks=(*self.blocks, notes))

    def window(
        self, block: int, may_read_KK: Tensor, window_blocks: int, delay_blocks: int = 1
    ) -> NoteWindow | None:
        """What lanes may read while writing `block`: the newest blocks that have been delivered.

        A note of block b is delivered at the start of block b + `delay_blocks`.
        """
        if block > len(self.blocks):
            raise BusError(
                f"Block {block} cannot begin: block {len(self.blocks)} has not been committed.\n"
                "Every lane waits at the barrier until all notes of the block are in."
            )
        end = max(0, block - delay_blocks + 1)
        first = max(0, end - window_blocks)
        visible = self.blocks[first:end]
        if not visible:
            return None
        device = visible[0].vectors_BKE.device
        lane = torch.arange(self.lanes, device=device)
        lag = block - torch.arange(first, end, device=device)  # 1 is the block just ended
        published = torch.cat([notes.published_BK for notes in visible], dim=1)  # [B, Q]
        producer = lane.repeat(len(visible))
        may_read = may_read_KK.to(device)[:, producer]  # [K, Q]
        return NoteWindow(
            vectors_BQE=torch.cat([notes.vectors_BKE for notes in visible], dim=1),
            producer_Q=producer,
            lag_Q=lag.repeat_interleave(self.lanes),
            readable_BKQ=published[:, None, :] & may_read[None, :, :],
            gate=self.gate,
        )
