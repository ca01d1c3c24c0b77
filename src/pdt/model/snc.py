"""Shared Notes Cross-Attention: how a lane reads the bus.

Paper: §3.5, Fig. 2.
"""

import torch
from torch import Tensor, nn

from pdt.config import PdtConfig
from pdt.model.gated_read import GatedRead, ReadMemory
from pdt.notes.address import SIBLING, NoteAddress
from pdt.notes.bus import NoteWindow


class SharedNotes(GatedRead):
    """Gated cross-attention from a lane's hidden state to the notes it may read.

    The inner gate scales the read and starts at one; at zero the channel is closed exactly, which
    σ(residual_gate) never is (docs/gaps.md).

    Paper: §3.5, Fig. 2.
    """

    def __init__(self, config: PdtConfig) -> None:
        reads = config.reads
        super().__init__(config.trunk.shape.width, reads, reads.notes_gate)
        self.address = NoteAddress(config.lanes.count, reads.memory_width)
        self.inner_gate = nn.Parameter(torch.ones(()))

    def read_notes(self, window: NoteWindow) -> ReadMemory:
        """Keys and values of one block's window, headers added as each lane sees them."""
        header_KQE = self.address(window.producer_Q, window.lag_Q)
        memory_BKQE = window.vectors_BQE[:, None] + header_KQE
        return self.project(memory_BKQE, window.readable_BKQ)._replace(gate=window.gate)

    def read_out(self, notes_BJE: Tensor, producer_BJ: Tensor, lag_BJ: Tensor) -> Tensor:
        """What a lane reads of a sibling's note when there is no other, whatever its own state."""
        kind_BJ = torch.full_like(producer_BJ, SIBLING)
        header_BJE = self.address.header(producer_BJ, kind_BJ, lag_BJ)
        notes_BJE = notes_BJE.to(header_BJE.dtype) + header_BJE
        read_BJD = self.o_proj(self.v_proj(notes_BJE))
        return self.inner_gate * torch.sigmoid(self.residual_gate) * read_BJD

    def forward(self, h_BKTD: Tensor, memory: ReadMemory) -> Tensor:
        return self.inner_gate * super().forward(h_BKTD, memory)
