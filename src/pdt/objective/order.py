"""Presentation order: a Plackett–Luce likelihood of the teacher's order, for any number of lanes.

Paper: §5.2, Eq. 8.
"""

import torch
from torch import Tensor


def order_loss(scores_BK: Tensor, lane_at_position_BK: Tensor) -> Tensor:
    """At each position, the teacher's lane among those not yet placed. Paper: §5.2, Eq. 8."""
    ordered = scores_BK.gather(1, lane_at_position_BK)
    remaining = ordered.flip(1).logcumsumexp(1).flip(1)  # log-sum over this position and all later
    return torch.sum(remaining - ordered, dim=1).mean()
