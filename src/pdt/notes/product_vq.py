"""Product vector quantization: one vector becomes M small integers, the whole payload of a note.

Paper: §3.5, Eq. 5.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Quantized(NamedTuple):
    """Codes, and the vectors a receiver decodes from them."""

    codes_BKM: Tensor
    vectors_BKE: Tensor


class _StraightThrough(torch.autograd.Function):
    """Forward: exactly the decoded vector. Backward: the gradient goes to the written vector."""

    @staticmethod
    def forward(ctx: Any, written: Tensor, decoded: Tensor) -> Tensor:
        return decoded.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class ProductVQ(nn.Module):
    """M codebooks of C entries; a vector of width E is M subvectors of width E/M.

    A receiver has nothing but the indices: what it reads is a row of a codebook, bit for bit, in
    training as in generation. The codebook itself learns from its own loss (§5.2), not from here.

    Paper: §3.5, Eq. 5.
    """

    def __init__(self, width: int, codebooks: int, codes: int) -> None:
        super().__init__()
        self.codebooks = nn.Parameter(torch.empty(codebooks, codes, width // codebooks))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.codebooks, std=self.codebooks.shape[-1] ** -0.5)

    def forward(self, written_BKE: Tensor) -> Quantized:
        """Quantize; gradients pass straight through to the writer."""
        codes = self.nearest(written_BKE)
        decoded = self.decode(codes)
        return Quantized(codes, _StraightThrough.apply(written_BKE, decoded.detach()))

    def nearest(self, written_BKE: Tensor) -> Tensor:
        """Eq. 5: per subvector, the index of the nearest code."""
        books = self.codebooks.detach()
        parts = written_BKE.detach().unflatten(
            -1, (books.shape[0], books.shape[2])
        )  # [B, K, M, E/M]
        # |u|² is the same for every code, so |e|² - 2 u·e ranks as |u - e|² does.
        distance = books.square().sum(-1) - 2 * torch.einsum("bkmw,mcw->bkmc", parts, books)
        return distance.argmin(-1)

    def decode(self, codes_BKM: Tensor) -> Tensor:
        """Indices → vectors, the receiver's side of the channel."""
        rows = [book[codes_BKM[..., m]] for m, book in enumerate(self.codebooks)]
        return torch.cat(rows, dim=-1)
