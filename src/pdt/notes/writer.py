"""The note writer: a lane's block-final state becomes a note.

Paper: §3.5, Eq. 5.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from pdt.notes.bus import NoteBlock
from pdt.notes.product_vq import ProductVQ


class NoteWriter(nn.Module):
    """Block-final hidden state → memory width → M codes.

    The state is the last upper layer's output at the block's last token, before the final norm.
    With `norm` all written vectors have the same length, so that notes cannot draw together
    (docs/gaps.md); it has no parameters.
    """

    def __init__(
        self, trunk_width: int, memory_width: int, codebooks: int, codes: int, *, norm: bool
    ) -> None:
        super().__init__()
        self.proj = nn.Linear(trunk_width, memory_width)
        self.norm = norm
        self.vq = ProductVQ(memory_width, codebooks, codes)

    def forward(self, h_BKD: Tensor, published_BK: Tensor) -> NoteBlock:
        # A note is a choice of codes: it is made in the writer's own dtype, not in the lanes'.
        written = self.proj(h_BKD.to(self.proj.weight.dtype))
        if self.norm:
            written = F.layer_norm(written, written.shape[-1:])
        codes, vectors = self.vq(written)
        return NoteBlock(codes, vectors, published_BK, written)
