"""The teacher's plans in the planner's place.

A node's vector is what the record says of its words (the paper), or what the frozen trunk says of
the source passages that the node owns. Of the second kind a planner only has to point at a passage
and a lane only has to match like with like, so both work for words that nobody has seen.

Paper: §4.3, §6, Table 3 (oracle plans).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.model.passages import passages_in_plan_space
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.records.batch import RecordBatch
from pdt.terms import NodeTarget


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
        model.config, model.trunk, prompt, batch.fact_start_BF, batch.fact_stop_BF
    )
    nodes = torch.zeros_like(batch.plan_targets_BKNP).flatten(1, 2)  # [B, K * N, P]
    owned_BF = batch.owner_lane_BF >= 0
    place_BF = batch.owner_lane_BF * model.config.planner.nodes + batch.owner_node_BF
    rows_BFP = facts_BFP * owned_BF[..., None]
    index = place_BF.clamp(min=0)[..., None].expand_as(rows_BFP)
    nodes.scatter_add_(1, index, rows_BFP.to(nodes.dtype))
    return F.normalize(nodes, dim=-1).view_as(batch.plan_targets_BKNP)
