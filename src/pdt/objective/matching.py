"""Unordered plan matching: the teacher's plans are a set, so the cheapest lane permutation counts.

Paper: §5.1, Eq. 7.
"""

from itertools import permutations
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Matching(NamedTuple):
    """The plan loss, and which predicted plan stands for each of the teacher's."""

    loss: Tensor
    predicted_of_teacher_BK: Tensor
    """σ* of Eq. 7; no gradient passes through the choice."""


def match_plans(
    nodes_BKNP: Tensor, validity_BKN: Tensor, targets_BKNP: Tensor, valid_BKN: Tensor
) -> Matching:
    """The least cost over all K! permutations of lanes; nodes inside a plan keep their order.

    Paper: §5.1, Eq. 7.
    """
    pairs_BJK = pair_costs(nodes_BKNP, validity_BKN, targets_BKNP, valid_BKN)
    K, device = pairs_BJK.shape[-1], pairs_BJK.device
    lane_K = torch.arange(K, device=device)
    choices = torch.tensor(list(permutations(range(K))), device=device)  # [K!, K]
    costs = pairs_BJK[:, choices, lane_K].sum(-1)  # [B, K!]
    best = costs.detach().argmin(1)
    return Matching(costs.gather(1, best[:, None]).mean(), choices[best])


def pair_costs(
    nodes_BKNP: Tensor, validity_BKN: Tensor, targets_BKNP: Tensor, valid_BKN: Tensor
) -> Tensor:
    """What predicted plan j costs in the place of teacher plan k: [B, J, K]. Their sum is C(σ)."""
    K, N = valid_BKN.shape[1:]
    apart = ((1 - _cosines(nodes_BKNP, targets_BKNP)) * valid_BKN[:, None]).sum(-1)
    exists = F.binary_cross_entropy_with_logits(
        validity_BKN[:, :, None].expand(-1, -1, K, -1),
        valid_BKN[:, None].expand(-1, K, -1, -1).to(validity_BKN.dtype),
        reduction="none",
    ).sum(-1)
    return apart / valid_BKN.sum((1, 2)).clamp(min=1)[:, None, None] + exists / (K * N)


@torch.no_grad()
def plans_apart(nodes_BKNP: Tensor, targets_BKNP: Tensor, valid_BKN: Tensor) -> Tensor:
    """The share of documents in which every predicted plan is nearest to a teacher plan of its own.

    The plan loss alone does not tell a planner whose plans are all vague from one that gives two
    lanes the same blend of two plans; this does.
    """
    cosines_BJKN = _cosines(nodes_BKNP, targets_BKNP) * valid_BKN[:, None]
    nearest_BJ = (cosines_BJKN.sum(-1) / valid_BKN.sum(-1).clamp(min=1)[:, None]).argmax(-1)
    lane_K = torch.arange(nearest_BJ.shape[1], device=nearest_BJ.device)
    return (nearest_BJ.sort(1).values == lane_K).all(1).float().mean()


def _cosines(nodes_BKNP: Tensor, targets_BKNP: Tensor) -> Tensor:
    """Of each node of predicted plan j and the same node of teacher plan k: [B, J, K, N]."""
    return torch.einsum(
        "bjnp,bknp->bjkn", F.normalize(nodes_BKNP, dim=-1), F.normalize(targets_BKNP, dim=-1)
    )
