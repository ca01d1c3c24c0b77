"""Lane token likelihood: exact teacher-forced cross entropy over every valid token, EOS included.

Paper: §5.2.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def scoring_states(before_BKD: Tensor, h_BKTD: Tensor) -> Tensor:
    """The state that scores each token: the one before it, over block borders too."""
    return torch.cat([before_BKD[:, :, None], h_BKTD[:, :, :-1]], dim=2)


def token_nll(logits_BKTV: Tensor, tokens_BKT: Tensor) -> Tensor:
    """-log p of each token, 0 where a shorter lane is padded (token below 0): [B, K, T]."""
    nll = F.cross_entropy(
        logits_BKTV.flatten(0, 2).float(), tokens_BKT.clamp(min=0).flatten(), reduction="none"
    )
    return nll.view_as(tokens_BKT).masked_fill(tokens_BKT < 0, 0.0)


def token_loss(nll_BKT: Tensor, valid_BKT: Tensor, *heavier: tuple[Tensor, float]) -> Tensor:
    """Mean over all tokens of a document, whatever lane wrote them.

    A token marked by one of `heavier` counts so many times; all others count as ever.
    """
    weight = torch.ones_like(nll_BKT)
    for marked_BKT, times in heavier:
        weight = torch.where(marked_BKT, weight * times, weight)
    return mean_over_documents(nll_BKT * weight, valid_BKT)
