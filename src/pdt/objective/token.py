"""Lane token likelihood: exact teacher-forced cross entropy over every valid token, EOS included.

Paper: §5.2.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.model.product import product
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


def token_nll_of_states(h_BKTD: Tensor, head_VD: Tensor, tokens_BKT: Tensor) -> Tensor:
    """`token_nll` of `h_BKTD` times a frozen head, some rows at a time: no logits are kept, and
    rows of padding cost nothing."""
    if head_VD.requires_grad:
        return token_nll(product(h_BKTD, head_VD), tokens_BKT)
    if tokens_BKT.is_meta:  # values that only have a size: none of them is padding
        nll_R = _FrozenHead.apply(h_BKTD.flatten(0, 2), head_VD, tokens_BKT.flatten())
        return nll_R.view_as(tokens_BKT)
    real = tokens_BKT >= 0
    nll_R = _FrozenHead.apply(h_BKTD[real], head_VD, tokens_BKT[real])
    out = nll_R.new_zeros(tokens_BKT.shape)
    return out.masked_scatter(real, nll_R)


ROWS = 64
"""Rows scored at a time: few enough that their logits stay near."""


class _FrozenHead(torch.autograd.Function):
    """-log p of each row's token; the state's gradient is taken while its logits are at hand."""

    @staticmethod
    def forward(ctx: Any, h_RD: Tensor, head_VD: Tensor, tokens_R: Tensor) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        nll, slopes = [], []
        for h, tokens in zip(h_RD.split(ROWS), tokens_R.split(ROWS), strict=True):
            log_p = product(h, head_VD).float().log_softmax(-1)
            nll.append(-log_p.gather(1, tokens[:, None])[:, 0])
            if wanted:
                p = log_p.exp_()
                p[torch.arange(len(p), device=p.device), tokens] -= 1
                slopes.append(p.to(h.dtype) @ head_VD)
        if wanted:
            ctx.save_for_backward(torch.cat(slopes) if slopes else h_RD)
        return torch.cat(nll) if nll else h_RD.new_zeros(0, dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slope_RD,) = ctx.saved_tensors
        return (gradients[0][:, None] * slope_RD).to(slope_RD.dtype), None, None


def token_loss(nll_BKT: Tensor, valid_BKT: Tensor, *heavier: tuple[Tensor, float]) -> Tensor:
    """Mean over all tokens of a document, whatever lane wrote them.

    A token marked by one of `heavier` counts so many times; all others count as ever.
    """
    weight = torch.ones_like(nll_BKT)
    for marked_BKT, times in heavier:
        weight = torch.where(marked_BKT, weight * times, weight)
    return mean_over_documents(nll_BKT * weight, valid_BKT)
