"""Persistent, hard-routed plan memory: lane k reads plan k at every upper layer, for ever.

Paper: §3.4, Eq. 3, Eq. 4.
"""

import torch
from torch import Tensor, nn

from pdt.config import PdtConfig
from pdt.model.gated_read import GatedRead, ReadMemory


class PlanMemory(nn.Module):
    """Plan nodes → memory width: the part of Eq. 3 that all layers share.

    Paper: §3.4, Eq. 3.
    """

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        self.proj = nn.Linear(config.planner.width, config.reads.memory_width)
        self.norm = nn.LayerNorm(config.reads.memory_width)

    def forward(self, nodes_BKNP: Tensor) -> Tensor:
        return self.norm(self.proj(nodes_BKNP))


class PlanKV(GatedRead):
    """Gated cross-attention from a lane's hidden state to that lane's own valid plan nodes.

    Paper: §3.4, Eq. 4, Fig. 2.
    """

    def __init__(self, config: PdtConfig) -> None:
        reads = config.reads
        super().__init__(config.trunk.shape.width, reads, reads.plan_gate)
        self.node_position = nn.Parameter(torch.empty(config.planner.nodes, reads.memory_width))
        nn.init.normal_(self.node_position, std=reads.node_positions)

    def read_plan(self, memory_BKNE: Tensor, valid_BKN: Tensor) -> ReadMemory:
        """Keys and values of the whole generation; nodes stay apart, each at its own position."""
        return self.project(memory_BKNE + self.node_position, valid_BKN)
