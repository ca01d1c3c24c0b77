"""The combined objective: each loss by its name, and their weighted sum.

Paper: §5.3, Eq. 9.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from pdt.config import ObjectiveConfig
from pdt.terms import Loss


def total_loss(parts: Mapping[Loss, Tensor], weights: ObjectiveConfig) -> Tensor:
    """Σ weight · loss over the losses that count in this stage. Paper: §5.3, Eq. 9."""
    if not parts:
        raise ValueError("no loss counts; a curriculum stage must name at least one")
    return torch.stack([weights.weight(loss) * part.float() for loss, part in parts.items()]).sum()
