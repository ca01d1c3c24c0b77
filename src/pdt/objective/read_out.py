"""Read-out: a note alone must name the token that a sibling will write because of it.

Not in the paper. The records hold checked edges from an owner's block to a receiver's token (§4.3);
this loss trains both ends of such an edge before the receiver has learned to attend to it. It asks
only for coined tokens, which nothing but a note can tell, and is used in training alone.
"""

import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def read_out_loss(logits_BJV: Tensor, tokens_BJ: Tensor, valid_BJ: Tensor) -> Tensor:
    """Mean over the edges of a document, then over documents."""
    nll = F.cross_entropy(
        logits_BJV.flatten(0, 1).float(), tokens_BJ.clamp(min=0).flatten(), reduction="none"
    )
    return mean_over_documents(nll.view_as(tokens_BJ), valid_BJ)
