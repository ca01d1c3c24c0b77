"""Linear maps and norms: one weight for all lanes, one slice a lane, or one with a change a lane.

A layer asks its `Bank` for them and does not know which it was given.

Paper: §3.3.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdt.model.blocks import Packed
from pdt.model.product import product


class Linear(nn.Module):
    """`weight` is [out, in] for all lanes, or [K, out, in], advanced by one grouped product.

    Values are not drawn here: they come from a pretrained trunk, a saved model or `random_model`.

    Paper: §3.3: every projection carries a leading physical-decoder axis.
    """

    def __init__(self, inputs: int, outputs: int, *, lanes: int | None, bias: bool = False) -> None:
        super().__init__()
        axis = () if lanes is None else (lanes,)
        self.weight = nn.Parameter(torch.empty(*axis, outputs, inputs))
        self.bias = nn.Parameter(torch.empty(*axis, outputs)) if bias else None

    def forward(self, x_BKTD: Tensor) -> Tensor:
        return product(x_BKTD, self.weight, self.bias)


class PackedLinear(nn.Module):
    """A linear map whose weight lies in blocks of GGUF's kinds, for all lanes or one slice a lane.

    Its weight is a value like any other to who multiplies by it; it is never trained.

    Not in the paper, whose weights are whole (§3.3).
    """

    def __init__(self, blocks: Tensor, inputs: int, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.blocks: Tensor
        self.register_buffer("blocks", blocks)
        self.inputs = inputs
        self.bias = bias

    @property
    def weight(self) -> Packed:
        return Packed(self.blocks, self.inputs)

    def forward(self, x_BKTD: Tensor) -> Tensor:
        return product(x_BKTD, self.weight, self.bias)


class PackedEmbedding(PackedLinear):
    """Rows of a table in blocks, looked up; a tied head multiplies by the same blocks."""

    def forward(self, tokens: Tensor) -> Tensor:
        return Packed(self.blocks[tokens], self.inputs).expanded()


class LowRankLinear(nn.Module):
    """One frozen weight for all lanes, and a change of low rank that each lane owns.

    The change is `widen @ narrow`, [K, out, rank] @ [K, rank, in]. It starts at zero, so that an
    untrained lane computes what the frozen weight computes. The frozen weight is the trunk's: it is
    not a parameter of this module, and a saved lane does not hold it.

    Not in the paper, whose lanes own whole copies (§3.3).
    """

    def __init__(self, inputs: int, outputs: int, *, lanes: int | None, rank: int) -> None:
        super().__init__()
        axis = () if lanes is None else (lanes,)
        drawn = torch.randn(rank, inputs) * inputs**-0.5
        self.narrow = nn.Parameter(drawn.repeat(*axis, 1, 1))
        self.widen = nn.Parameter(torch.zeros(*axis, outputs, rank))
        self._base: tuple[Linear | PackedLinear, ...] = ()

    @property
    def base(self) -> Linear | PackedLinear:
        (base,) = self._base
        return base

    def stand_on(self, base: Linear | PackedLinear) -> None:
        self._base = (base,)  # in a tuple, or it would become a part of this module

    def forward(self, x_BKTD: Tensor) -> Tensor:
        change = product(product(x_BKTD, self.narrow), self.widen)
        return self.base(x_BKTD) + change


@dataclass(frozen=True)
class Bank:
    """Whose weights a layer has: everybody's (`lanes` None), or each lane's own; whole, or a change
    of low rank."""

    lanes: int | None = None
    rank: int | None = None

    def linear(self, inputs: int, outputs: int, *, bias: bool = False) -> nn.Module:
        if self.rank is None:
            return Linear(inputs, outputs, lanes=self.lanes, bias=bias)
        return LowRankLinear(inputs, outputs, lanes=self.lanes, rank=self.rank)

    def norm(self, width: int, eps: float) -> "RMSNorm":
        return RMSNorm(width, eps, lanes=self.lanes)


SHARED = Bank()


class RMSNorm(nn.Module):
    """Root-mean-square norm; `weight` is [D] for all lanes or [K, D]."""

    def __init__(self, width: int, eps: float, *, lanes: int | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width) if lanes is None else torch.ones(lanes, width))
        self.eps = eps

    def forward(self, h: Tensor) -> Tensor:
        """Over the last axis of [B, K, ..., width]."""
        width = h.shape[-1:]
        if self.weight.dim() == 1:
            return F.rms_norm(h, width, self.weight, self.eps)
        lanes = self.weight.shape[0]
        weight = self.weight.view(lanes, *(1 for _ in h.shape[2:-1]), *width)
        return F.rms_norm(h, width, None, self.eps) * weight
