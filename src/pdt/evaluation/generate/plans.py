"""The plans of a batch and their addresses: which physical lane holds which teacher outline.

Oracle plans stand on the record's own lanes. A learned plan set is unordered, so the outlines are
matched to the teacher's by the least cost of Eq. 7: the lane of the matched outline is the address
at which a fact of that teacher lane is expected.

Paper: §5.1, §7.1.
"""

from dataclasses import dataclass

import torch

from pdt.model.oracle import oracle_plans, plan_targets
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.objective.matching import match_plans
from pdt.records.batch import RecordBatch


@dataclass(frozen=True)
class AddressedPlans:
    """A plan set on its physical lanes."""

    plans: PlanSet
    lane_of_plan_BK: torch.Tensor
    """The lane that holds the outline of each teacher lane."""

    def in_teacher_order(self) -> PlanSet:
        """The same outlines on the teacher's lanes, for teacher forcing."""
        return self.plans.select(self.lane_of_plan_BK)


def given_plans(model: ParallelDecoder, batch: RecordBatch, prompt: Prompt) -> AddressedPlans:
    """The teacher's plans, each on its own lane."""
    lanes = torch.arange(batch.section_lengths_BK.shape[1]).expand_as(batch.section_lengths_BK)
    return AddressedPlans(oracle_plans(model, prompt, batch), lanes)


def plans_where_told(
    learned: AddressedPlans, given: AddressedPlans, told_B: torch.Tensor
) -> AddressedPlans:
    """The planner's plan where the request tells the division, the teacher's where nothing does."""
    ours, theirs = learned.plans, given.plans

    def chosen(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.where(told_B.view(-1, *[1] * (a.dim() - 1)), a, b.to(a.dtype))

    return AddressedPlans(
        PlanSet(
            chosen(ours.nodes_BKNP, theirs.nodes_BKNP),
            chosen(ours.valid_BKN, theirs.valid_BKN),
            chosen(ours.scores_BK, theirs.scores_BK),
        ),
        chosen(learned.lane_of_plan_BK, given.lane_of_plan_BK),
    )


@torch.inference_mode()
def read_batch(model: ParallelDecoder, batch: RecordBatch) -> Prompt:
    """The prompts below the fork, once for all conditions of a checkpoint."""
    return model.read_prompt(batch.prompt_tokens_BS.clamp(min=0), batch.prompt_valid_BS.sum(1))


@torch.inference_mode()
def learned_plans(model: ParallelDecoder, batch: RecordBatch, prompt: Prompt) -> AddressedPlans:
    """The planner's plans, where it put them."""
    plans = model.plan(prompt)
    assert plans.validity_BKN is not None
    targets = plan_targets(model, prompt, batch)
    matching = match_plans(plans.nodes_BKNP, plans.validity_BKN, targets, batch.node_valid_BKN)
    return AddressedPlans(plans, matching.predicted_of_teacher_BK)
