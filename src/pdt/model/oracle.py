"""The teacher's plans in the planner's place.

A node's vector is what the record says of its words (the paper), or what the frozen trunk says of
the source passages that the node owns. Of the second kind a planner only has to point at a passage
and a lane only has to match like with like, so both work for words that nobody has seen.

Paper: §4.3, §6, Table 3 (oracle plans).
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.config import PdtConfig
from pdt.model.pdt import ParallelDecoder, Prompt
from pdt.model.planner import PlanSet
from pdt.records.batch import RecordBatch
from pdt.records.embed import Projection
from pdt.terms import NodeTarget

OPENING_TOKENS = 4


def oracle_plans(model: ParallelDecoder, prompt: Prompt, batch: RecordBatch) -> PlanSet:
    """The teacher's outlines as they are: nodes, validity and order of the record."""
    targets = plan_targets(model, prompt, batch)
    return PlanSet(targets, batch.node_valid_BKN, -batch.presentation_rank_BK.float())


@torch.no_grad()
def plan_targets(model: ParallelDecoder, prompt: Prompt, batch: RecordBatch) -> Tensor:
    """What each plan node should be: [B, K, N, P]."""
    form = model.config.planner.targets
    if form is NodeTarget.TEXT:
        return batch.plan_targets_BKNP
    facts_BFP = passages_in_plan_space(
        model.config, prompt, batch.fact_start_BF, batch.fact_stop_BF
    )
    nodes = torch.zeros_like(batch.plan_targets_BKNP).flatten(1, 2)  # [B, K * N, P]
    owned_BF = batch.owner_lane_BF >= 0
    place_BF = batch.owner_lane_BF * model.config.planner.nodes + batch.owner_node_BF
    rows_BFP = facts_BFP * owned_BF[..., None]
    index = place_BF.clamp(min=0)[..., None].expand_as(rows_BFP)
    nodes.scatter_add_(1, index, rows_BFP.to(nodes.dtype))
    return F.normalize(nodes, dim=-1).view_as(batch.plan_targets_BKNP)


def passages_in_plan_space(
    config: PdtConfig, prompt: Prompt, start_BF: Tensor, stop_BF: Tensor
) -> Tensor:
    """What a node that owned such a passage of the prompt would be, at any length: [B, F, P]."""
    passages_BFD = _passages(prompt, start_BF, stop_BF, config.planner.targets)
    return passages_BFD @ _projection(config).to(passages_BFD.device).T


def _passages(prompt: Prompt, start_BF: Tensor, stop_BF: Tensor, form: NodeTarget) -> Tensor:
    """A unit vector for each fact's passage: how its states differ from the prompt's mean state."""
    h_BTD = F.rms_norm(prompt.h_BTD.float(), prompt.h_BTD.shape[-1:])
    if prompt.valid_BT is not None:
        h_BTD = h_BTD * prompt.valid_BT[..., None]
    h_BTD = h_BTD - (h_BTD.sum(1) / prompt.lengths_B[:, None])[:, None]
    start_BF, stop_BF = start_BF.clamp(min=1), stop_BF.clamp(min=2)
    if form is NodeTarget.BEFORE:
        start_BF, stop_BF = start_BF - 1, start_BF
    elif form is NodeTarget.OPENING:
        stop_BF = torch.minimum(stop_BF, start_BF + OPENING_TOKENS)
    sums = F.pad(h_BTD.cumsum(1), (0, 0, 1, 0))
    row = torch.arange(len(sums), device=sums.device)[:, None]
    return F.normalize(sums[row, stop_BF] - sums[row, start_BF], dim=-1)


def _projection(config: PdtConfig) -> Tensor:
    """The fixed Gaussian map from the trunk's width to the planner's."""
    return _drawn(config.records.projection_seed, config.planner.width, config.trunk.shape.width)


@lru_cache(maxsize=4)
def _drawn(seed: int, planner_width: int, trunk_width: int) -> Tensor:
    projection = Projection(seed, planner_width=planner_width, encoder_width=trunk_width)
    return torch.from_numpy(projection.weight_PE)
