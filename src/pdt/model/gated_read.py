"""Gated cross-attention from a lane's state to a small memory: the form Plan-KV and SNC share.

States of a large pretrained trunk are far from unit size (SmolLM2's are 20 to 30 near its end), and
a read that starts at nothing takes thousands of steps to be heard beside them. `in_state_units`
asks with the state over its root mean square and counts the answer in that unit.

Paper: §3.4, §3.5, Eq. 4, Fig. 2.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pdt.config import ReadsConfig
from pdt.model.product import product


class ReadMemory(NamedTuple):
    """Keys and values of a memory as each lane sees it, projected once and read many times."""

    k: Tensor  # [B, K, H, S, A/H]
    v: Tensor
    readable_BKS: Tensor
    gate: float = 1.0
    """A factor on the read's own gate."""


class GatedRead(nn.Module):
    """σ(gate) · W_O softmax(q kᵀ/√d) v, with W_O = 0 at the start.

    The maps are shared by all lanes; the memory is what differs. A lane that may read nothing gets
    exactly zero, so an empty memory and no memory are the same.
    """

    def __init__(self, state: int, reads: ReadsConfig, gate: float) -> None:
        super().__init__()
        memory, width = reads.memory_width, reads.width
        self.heads = reads.heads
        self.in_state_units = reads.in_state_units
        self.q_proj = nn.Linear(state, width)
        self.k_proj = nn.Linear(memory, width)
        self.v_proj = nn.Linear(memory, width)
        self.o_proj = nn.Linear(width, state)
        self.residual_gate = nn.Parameter(torch.tensor(gate))
        nn.init.zeros_(self.o_proj.weight)
        nn.init.zeros_(self.o_proj.bias)

    def project(self, memory_BKSE: Tensor, readable_BKS: Tensor) -> ReadMemory:
        memory_BKSE = memory_BKSE.to(self.k_proj.weight.dtype)  # plans and notes may be FP32
        k, v = self.k_proj(memory_BKSE), self.v_proj(memory_BKSE)
        return ReadMemory(self._split_heads(k), self._split_heads(v), readable_BKS)

    def forward(self, h_BKTD: Tensor, memory: ReadMemory) -> Tensor:
        unit_BKT1 = _unit(h_BKTD) if self.in_state_units else None
        asked = h_BKTD if unit_BKT1 is None else h_BKTD / unit_BKT1
        q = self._split_heads(product(asked, self.q_proj.weight, self.q_proj.bias))
        # Both B and K are batch axes of this attention: a lane has no address for another's memory.
        scores = q @ memory.k.transpose(-1, -2) * q.shape[-1] ** -0.5  # [B, K, H, T, S]
        hidden = ~memory.readable_BKS[:, :, None, None, :]
        weights = torch.softmax(scores.masked_fill(hidden, torch.finfo(scores.dtype).min), dim=-1)
        read = (weights @ memory.v).transpose(2, 3).flatten(3)  # [B, K, T, A]
        out = product(read, self.o_proj.weight, self.o_proj.bias)
        anything = memory.readable_BKS.any(-1)[:, :, None, None]
        gate = memory.gate * torch.sigmoid(self.residual_gate)
        out = out * (gate * anything).to(out.dtype)
        return out if unit_BKT1 is None else out * unit_BKT1

    def _split_heads(self, x_BKTA: Tensor) -> Tensor:
        return x_BKTA.unflatten(-1, (self.heads, -1)).transpose(2, 3)


def _unit(h_BKTD: Tensor) -> Tensor:
    """The root mean square of each state; it only sets the scale, so no gradient asks for it."""
    h = h_BKTD.detach()
    return h.float().square().mean(-1, keepdim=True).sqrt().clamp(min=1e-6).to(h.dtype)
