"""Linear maps and norms whose weight is shared by all lanes or has one slice a lane.

Paper: §3.3.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
