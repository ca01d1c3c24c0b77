"""Fact writing: OWNER, REFERENCE or ABSENT for every lane, block and fact.

Paper: §5.2.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

ROLES = 3


def class_weights(role_BX: Tensor) -> Tensor:
    """w_c = n / (3 n_c) of each document: [B, 3]; roles below 0 are padding.

    Three classes that occur weigh one third each; what never occurs has no label to weigh.
    """
    classes = torch.arange(ROLES, device=role_BX.device)
    n_c = (role_BX[..., None] == classes).sum(1)  # [B, 3]
    return n_c.sum(1, keepdim=True) / (ROLES * n_c.clamp(min=1))


def fact_write_loss(logits_BKUFc: Tensor, role_BKUF: Tensor) -> Tensor:
    """Cross entropy weighted by inverse class frequency, divided by the number of labels.

    Paper: §5.2.
    """
    role = role_BKUF.flatten(1)  # [B, K·U·F]
    label = role.clamp(min=0)
    nll = F.cross_entropy(logits_BKUFc.flatten(0, 3), label.flatten(), reduction="none").view_as(
        role
    )
    weight = class_weights(role).gather(1, label).masked_fill(role < 0, 0.0)
    return ((weight * nll).sum(1) / (role >= 0).sum(1).clamp(min=1)).mean()
