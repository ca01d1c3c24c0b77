"""Pointing: of all nodes of the teacher's plans a learned node must be nearest to its own.

A planner that points says so by its places: the place where its passage begins must be likely.

Not in the paper. Eq. 7 asks a node to be like its target and is nearly content with the mean of all
targets, from which a planner of passages parts slowly; this asks it to tell them from one another.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents

TEMPERATURE = 0.1


def point_loss(nodes_BKNP: Tensor, targets_BKNP: Tensor, valid_BKN: Tensor) -> Tensor:
    """Cross entropy of every node over all targets of its document, as cosines.

    Nodes are in the teacher's lane order (Eq. 7).
    """
    nodes, targets = (F.normalize(x, dim=-1).flatten(1, 2) for x in (nodes_BKNP, targets_BKNP))
    valid_BQ = valid_BKN.flatten(1)
    scores_BQQ = torch.einsum("bqp,brp->bqr", nodes, targets) / TEMPERATURE
    logp_BQQ = scores_BQQ.masked_fill(~valid_BQ[:, None], -torch.inf).log_softmax(-1)
    own_BQ = logp_BQQ.diagonal(dim1=1, dim2=2)
    return mean_over_documents(-own_BQ.masked_fill(~valid_BQ, 0.0), valid_BQ)


def place_loss(
    log_p_BKNT: Tensor, start_BF: Tensor, owner_lane_BF: Tensor, owner_node_BF: Tensor
) -> Tensor:
    """-log p of the place where each owned fact begins, from the node that owns it.

    Facts below 0 in `owner_lane_BF` are padding; nodes are in the teacher's lane order.
    """
    owned_BF = owner_lane_BF >= 0
    row = torch.arange(len(start_BF), device=start_BF.device)[:, None]
    lane, node = owner_lane_BF.clamp(min=0), owner_node_BF.clamp(min=0)
    log_p_BF = log_p_BKNT[row, lane, node, start_BF.clamp(min=1)]
    return mean_over_documents(-log_p_BF.masked_fill(~owned_BF, 0.0), owned_BF)
