"""The set planner: reads the prompt once, returns K unordered outlines and a presentation order.

Paper: §3.2, Eq. 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdt.config import PdtConfig


@dataclass(frozen=True)
class PlanSet:
    """K outlines of at most N nodes each, on the lanes that will write them."""

    nodes_BKNP: Tensor
    valid_BKN: Tensor
    """Which nodes exist; a boolean."""
    scores_BK: Tensor
    """Presentation scores; the highest is read first."""
    validity_BKN: Tensor | None = None
    """The planner's validity logits; None for a plan that was given (oracle)."""

    @property
    def lane_at_position(self) -> Tensor:
        """[B, K]: the lane whose section the reader sees at each position."""
        return self.scores_BK.argsort(dim=-1, descending=True, stable=True)

    def select(self, lanes: Tensor | Sequence[int]) -> "PlanSet":
        """The outlines of these lanes in this order: [J] the same in every document, or [B, J]."""
        device = self.nodes_BKNP.device
        row = torch.arange(len(self.nodes_BKNP), device=device)[:, None]
        lanes = torch.as_tensor(lanes, device=device)
        return self._each(lambda part: part[row, lanes])

    def document(self, number: int) -> "PlanSet":
        """The plans of one document, as a batch of one."""
        return self._each(lambda part: part[number : number + 1])

    def with_a_node(self) -> "PlanSet":
        """Where no node of a lane's plan exists its likeliest one does: no lane writes without."""
        if self.validity_BKN is None:
            return self
        likeliest_BKN = F.one_hot(self.validity_BKN.argmax(-1), self.valid_BKN.shape[-1]).bool()
        none_BK1 = ~self.valid_BKN.any(-1, keepdim=True)
        return replace(self, valid_BKN=self.valid_BKN | (likeliest_BKN & none_BK1))

    def to(self, device: torch.device) -> "PlanSet":
        return self._each(lambda part: part.to(device))

    def _each(self, edit: Callable[[Tensor], Tensor]) -> "PlanSet":
        return PlanSet(
            edit(self.nodes_BKNP),
            edit(self.valid_BKN),
            edit(self.scores_BK),
            None if self.validity_BKN is None else edit(self.validity_BKN),
        )


class SetPlanner(nn.Module):
    """K groups of N learned queries cross-attend to the prompt through a small Transformer decoder.

    It takes prompt states and nothing else, so no generated token can reach it.

    Paper: §3.2, Eq. 2.
    """

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        planner = config.planner
        self.lanes, self.nodes = config.lanes.count, planner.nodes
        self.prompt_proj = nn.Linear(config.trunk.shape.width, planner.width)
        self.queries = nn.Parameter(torch.empty(self.lanes * self.nodes, planner.width))
        layer = nn.TransformerDecoderLayer(
            planner.width,
            planner.heads,
            planner.feed_forward,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        norm = nn.LayerNorm(planner.width)
        self.decoder = nn.TransformerDecoder(layer, planner.layers, norm)
        self.validity = nn.Linear(planner.width, 1)
        self.presentation = nn.Linear(planner.width, 1)
        nn.init.normal_(self.queries, std=0.02)

    def forward(self, h_BTD: Tensor, valid_BT: Tensor | None) -> PlanSet:
        """`h_BTD` is the trunk's output at the fork; `valid_BT` is False on padding."""
        h_BTD = h_BTD.to(self.queries.dtype)  # the trunk may compute in BF16
        prompt = self.prompt_proj(F.rms_norm(h_BTD, h_BTD.shape[-1:]))
        queries = self.queries.expand(len(prompt), -1, -1)
        padding = None if valid_BT is None else ~valid_BT
        states = self.decoder(queries, prompt, memory_key_padding_mask=padding)
        nodes = states.unflatten(1, (self.lanes, self.nodes))  # [B, K, N, P]
        validity = self.validity(nodes).squeeze(-1)
        scores = self.presentation(nodes.mean(2)).squeeze(-1)
        return PlanSet(nodes, validity > 0, scores, validity)
