"""Dynamic-note alignment: a note is told apart from all other notes of its document.

Paper: §5.2.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.objective.documents import mean_over_documents


def note_loss(
    vectors_BWE: Tensor, written_BWE: Tensor, published_BW: Tensor, temperature: float
) -> Tensor:
    """Symmetric InfoNCE between quantized notes and the vectors they were written from.

    W runs over all lanes and blocks of the document; what was not published is no negative.

    Paper: §5.2.
    """
    similar = F.normalize(vectors_BWE, dim=-1) @ F.normalize(written_BWE, dim=-1).transpose(1, 2)
    closed = torch.finfo(similar.dtype).min
    nll = torch.zeros_like(written_BWE[..., 0])
    for scores in (similar / temperature, similar.transpose(1, 2) / temperature):
        scores = scores.masked_fill(~published_BW[:, None], closed)
        nll = nll - scores.log_softmax(-1).diagonal(dim1=1, dim2=2)
    return mean_over_documents(nll / 2, published_BW)
