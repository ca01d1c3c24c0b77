"""Outline progress: a block-final state knows which of its lane's plan nodes it wrote.

Paper: §5.2.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def progress_loss(logits_BKUN: Tensor, active_node_BKU: Tensor, node_valid_BKN: Tensor) -> Tensor:
    """Cross entropy over the lane's own valid nodes; a block below 0 does not exist."""
    closed = torch.finfo(logits_BKUN.dtype).min
    logits = logits_BKUN.masked_fill(~node_valid_BKN[:, :, None], closed)
    target = active_node_BKU.clamp(min=0)
    nll = F.cross_entropy(logits.flatten(0, 2), target.flatten(), reduction="none")
    exists = active_node_BKU >= 0
    return mean_over_documents(nll.view_as(target), exists)
