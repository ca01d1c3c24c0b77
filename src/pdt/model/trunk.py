"""The frozen shared trunk: embedding and layers below the fork, and the final norm and head.

Paper: §3.1, Fig. 1.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from pdt.config import TrunkShape
from pdt.model.cache import LayerMemory
from pdt.model.layer import DecoderLayer, projections
from pdt.model.linear import Linear, RMSNorm
from pdt.model.product import product
from pdt.model.rope import Rotary


@dataclass(frozen=True)
class TrunkIdentity:
    """Which frozen weights a model stands on."""

    source: str | None
    revision: str | None
    digest: str
    """Of every shared tensor's name, shape and fp32 values, whatever file they were stored in."""


def tensors_digest(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """SHA-256 over names, shapes and fp32 values, in the order given."""
    total = hashlib.sha256()
    for name, value in tensors:
        total.update(f"{name} {tuple(value.shape)}\n".encode())
        total.update(value.detach().cpu().float().contiguous().numpy().data)
    return total.hexdigest()


class Trunk(nn.Module):
    """One set of weights for all lanes, run outside autograd and never trained.

    The lanes' rows pass through it side by side; they share parameters, not a trajectory. `upper`
    are the projections above the fork, where lanes own only changes of them; else it is empty.

    Paper: §3.1.
    """

    def __init__(self, shape: TrunkShape, fork_layer: int, *, upper_layers: int = 0) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding.from_pretrained(torch.empty(shape.vocabulary, shape.width))
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(fork_layer))
        self.upper = nn.ModuleList(projections(shape) for _ in range(upper_layers))
        self.norm = RMSNorm(shape.width, shape.norm_eps)
        self.lm_head = (
            None if shape.tied_head else Linear(shape.width, shape.vocabulary, lanes=None)
        )
        self.requires_grad_(False)

    @torch.no_grad()
    def forward(self, tokens_BKT: Tensor, rotary: Rotary, memories: list[LayerMemory]) -> Tensor:
        """States at the fork; `memories` is one per lower layer and grows by these tokens."""
        h_BKTD = self.embed_tokens(tokens_BKT)
        for layer, memory in zip(self.decoder_layers, memories, strict=True):
            h_BKTD = layer(h_BKTD, rotary, memory)
        return h_BKTD

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.layers))

    def shared(self) -> list[tuple[str, nn.Parameter]]:
        """The frozen parameters, in the order their digest takes them."""
        return sorted(self.named_parameters())

    @property
    def head(self) -> Tensor:
        """The language-model head, [V, D]."""
        return self.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    def logits(self, h_BKTD: Tensor) -> Tensor:
        """Final norm and language-model head, shared by all lanes; gradients pass through to h."""
        return product(self.norm(h_BKTD), self.head)
