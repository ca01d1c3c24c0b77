"""Owned-fact routing: which plan node owns which fact; hard negatives belong to none.

Paper: §5.2.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def owned_pairs(owner_lane_BF: Tensor, owner_node_BF: Tensor, lanes: int, nodes: int) -> Tensor:
    """True at the one node that owns each fact: [B, K, N, F]. A reference is no ownership."""
    device = owner_lane_BF.device
    lane = torch.arange(lanes, device=device)[:, None, None]
    node = torch.arange(nodes, device=device)[:, None]
    return (owner_lane_BF[:, None, None] == lane) & (owner_node_BF[:, None, None] == node)


def route_loss(
    fact_logits_BKNF: Tensor,
    negative_logits_BKNF: Tensor,
    owner_lane_BF: Tensor,
    owner_node_BF: Tensor,
    node_valid_BKN: Tensor,
) -> Tensor:
    """Binary cross entropy; owned pairs and all other pairs weigh equally in sum.

    Facts below 0 in `owner_lane_BF` are padding. Every pair with a hard negative is a negative.

    Paper: §5.2.
    """
    K, N = node_valid_BKN.shape[1:]
    real = node_valid_BKN[..., None] & (owner_lane_BF >= 0)[:, None, None]
    owned = owned_pairs(owner_lane_BF, owner_node_BF, K, N) & real
    positive = mean_over_documents(F.softplus(-fact_logits_BKNF), owned)
    negative = mean_over_documents(
        F.softplus(torch.cat([fact_logits_BKNF, negative_logits_BKNF], dim=-1)),
        torch.cat([real & ~owned, real], dim=-1),
    )
    return (positive + negative) / 2
