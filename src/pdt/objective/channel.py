"""Finite-channel regularization: writer and codebook approach each other, and codes stay in use.

Paper: §5.2.
"""

import math

import torch
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def commitment_loss(
    written_BWE: Tensor, code_rows_BWE: Tensor, published_BW: Tensor, M: int
) -> Tensor:
    """‖u - sg[e]‖² of each subvector: moves the writer. Paper: §5.2."""
    return _squared_distance(written_BWE, code_rows_BWE.detach(), published_BW, M)


def codebook_loss(
    written_BWE: Tensor, code_rows_BWE: Tensor, published_BW: Tensor, M: int
) -> Tensor:
    """‖sg[u] - e‖² of each subvector: moves the chosen codes. Paper: §5.2."""
    return _squared_distance(written_BWE.detach(), code_rows_BWE, published_BW, M)


def usage_deficit(
    written_BWE: Tensor, codes_BWM: Tensor, codebooks_MCe: Tensor, published_BW: Tensor
) -> Tensor:
    """1 - H/log C per codebook, H the entropy of how often codes were chosen: [M].

    Their mean is L_usage. The value is that of the codes really sent. Counting has no gradient, so
    we take that of the soft choice softmax(-‖u - e‖²); it moves writer and codebook (docs/gaps.md).

    Paper: §5.2.
    """
    M, C, _ = codebooks_MCe.shape
    parts = written_BWE.unflatten(-1, (M, -1))  # [B, W, M, e]
    near = 2 * torch.einsum("bwme,mce->bwmc", parts, codebooks_MCe) - codebooks_MCe.square().sum(-1)
    soft = near.softmax(-1)
    chosen = torch.nn.functional.one_hot(codes_BWM, C).to(soft.dtype) + (soft - soft.detach())
    count = published_BW.sum(1).clamp(min=1)[:, None, None]
    share = chosen.masked_fill(~published_BW[..., None, None], 0.0).sum(1) / count  # [B, M, C]
    # A share of 0 adds 0 to the entropy and keeps a finite pull.
    entropy = -(share * share.clamp(min=1e-8).log()).sum(-1)
    wrote = published_BW.any(1)[:, None]
    return (1 - entropy / math.log(C)).masked_fill(~wrote, 0.0).mean(0)


def code_counts(codes_BWM: Tensor, published_BW: Tensor, C: int) -> Tensor:
    """How many published notes chose each code of each codebook: [M, C]."""
    chosen_BWMC = torch.nn.functional.one_hot(codes_BWM, C)
    return chosen_BWMC.masked_fill(~published_BW[..., None, None], 0).sum((0, 1))


def _squared_distance(u_BWE: Tensor, e_BWE: Tensor, published_BW: Tensor, M: int) -> Tensor:
    distance = (u_BWE - e_BWE).unflatten(-1, (M, -1)).square().sum(-1)  # [B, W, M]
    return mean_over_documents(distance, published_BW[..., None].expand_as(distance))
