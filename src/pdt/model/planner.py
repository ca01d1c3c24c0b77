"""The set planner: reads the prompt once, returns K unordered outlines and a presentation order.

Where nodes are passages of the prompt a planner can point (`planner.points`): a query then chooses
a place, and its node is what the frozen trunk says of a passage that begins there.

Paper: §3.2, Eq. 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    places_BKNT: Tensor | None = None
    """log p of every place of the prompt, of a planner that points."""

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
            None if self.places_BKNT is None else edit(self.places_BKNT),
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
        layer = nn.TransformerDecoderLayer(**_layer_settings(config))
        self.prompt = PromptEncoder(config) if planner.prompt_layers else None
        if planner.points:
            self.point_from = nn.Linear(planner.width, planner.width)
            self.point_to = nn.Linear(planner.width, planner.width)
        norm = nn.LayerNorm(planner.width)
        self.decoder = nn.TransformerDecoder(layer, planner.layers, norm)
        self.validity = nn.Linear(planner.width, 1)
        self.presentation = nn.Linear(planner.width, 1)
        nn.init.normal_(self.queries, std=0.02)

    def forward(
        self, h_BTD: Tensor, valid_BT: Tensor | None, passages_BTP: Tensor | None = None
    ) -> PlanSet:
        """`h_BTD` is the trunk's output at the fork; `valid_BT` is False on padding.

        `passages_BTP` is what a node would be that pointed at each place.
        """
        h_BTD = h_BTD.to(self.queries.dtype)  # the trunk may compute in BF16
        prompt = self.prompt_proj(F.rms_norm(h_BTD, h_BTD.shape[-1:]))
        queries = self.queries.expand(len(prompt), -1, -1)
        padding = None if valid_BT is None else ~valid_BT
        if self.prompt is not None:
            prompt = self.prompt(prompt, padding)
        states = self.decoder(queries, prompt, memory_key_padding_mask=padding)
        nodes = states.unflatten(1, (self.lanes, self.nodes))  # [B, K, N, P]
        validity = self.validity(nodes).squeeze(-1)
        scores = self.presentation(nodes.mean(2)).squeeze(-1)
        plans = PlanSet(nodes, validity > 0, scores, validity)
        if passages_BTP is None:
            return plans
        return self._pointing(plans, prompt, padding, passages_BTP.to(prompt.dtype))

    def _pointing(
        self, plans: PlanSet, prompt_BTP: Tensor, padding_BT: Tensor | None, passages_BTP: Tensor
    ) -> PlanSet:
        """Nodes as passages of the prompt: each its own place alone, with the gradient of all."""
        q, k = self.point_from(plans.nodes_BKNP), self.point_to(prompt_BTP)
        logits_BKNT = torch.einsum("bknp,btp->bknt", q, k) * q.shape[-1] ** -0.5
        if padding_BT is not None:
            logits_BKNT = logits_BKNT.masked_fill(padding_BT[:, None, None], -torch.inf)
        log_p = logits_BKNT.log_softmax(-1)
        soft_BKNP = torch.einsum("bknt,btp->bknp", log_p.exp(), passages_BTP)
        row = torch.arange(len(passages_BTP), device=passages_BTP.device)[:, None, None]
        chosen_BKNP = passages_BTP[row, own_places(log_p.detach(), plans.valid_BKN)]
        nodes = chosen_BKNP + soft_BKNP - soft_BKNP.detach()
        return replace(plans, nodes_BKNP=nodes, places_BKNT=log_p)


def own_places(log_p_BKNT: Tensor, valid_BKN: Tensor) -> Tensor:
    """The place of every node, [B, K, N]: the likeliest that no surer node of the document has.

    A fact has one owner (§2.1). Nodes that do not exist take no place from others.
    """
    B, K, N, T = log_p_BKNT.shape
    place_BQ = log_p_BKNT.argmax(-1).flatten(1)
    free_BQT = log_p_BKNT.flatten(1, 2).masked_fill(~valid_BKN.flatten(1)[..., None], -torch.inf)
    row = torch.arange(B, device=place_BQ.device)
    for _ in range(min(K * N, T)):
        best_B = free_BQT.flatten(1).argmax(-1)
        node_B, found_B = best_B // T, best_B % T
        left_B = free_BQT[row, node_B, found_B].isfinite()  # else this document's are all placed
        place_BQ[row, node_B] = torch.where(left_B, found_B, place_BQ[row, node_B])
        free_BQT[row, node_B] = -torch.inf
        free_BQT[row, :, found_B] = free_BQT[row, :, found_B].masked_fill(
            left_B[:, None], -torch.inf
        )
    return place_BQ.view(B, K, N)


class PromptEncoder(nn.Module):
    """The prompt read in both directions, so that where a passage begins says what follows.

    The trunk's states know only what stands before them. Not in the paper (§3.2), whose queries
    attend to them directly.
    """

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        planner = config.planner
        layer = nn.TransformerEncoderLayer(**_layer_settings(config))
        self.layers = nn.TransformerEncoder(
            layer, planner.prompt_layers, nn.LayerNorm(planner.width), enable_nested_tensor=False
        )

    def forward(self, prompt_BTP: Tensor, padding_BT: Tensor | None) -> Tensor:
        places = _waves(prompt_BTP).to(prompt_BTP.dtype)
        return self.layers(prompt_BTP + places, src_key_padding_mask=padding_BT)


def _layer_settings(config: PdtConfig) -> dict[str, Any]:
    """What torch's own layers are told, those that read the prompt and those of the queries."""
    planner = config.planner
    return {
        "d_model": planner.width,
        "nhead": planner.heads,
        "dim_feedforward": planner.feed_forward,
        "dropout": 0.0,
        "activation": "gelu",
        "batch_first": True,
        "norm_first": True,
    }


def _waves(x_BTP: Tensor) -> Tensor:
    """Sines and cosines of every place, as wide as the prompt: [T, P]."""
    T, P = x_BTP.shape[1:]
    place_T1 = torch.arange(T, device=x_BTP.device)[:, None]
    rates = torch.exp(torch.arange(0, P, 2, device=x_BTP.device) * (-math.log(10_000.0) / P))
    return torch.stack([(place_T1 * rates).sin(), (place_T1 * rates).cos()], -1).flatten(1)
