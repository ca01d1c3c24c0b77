"""Teacher forcing under a condition: the likelihood of every target token, notes edited or not.

Paper: §7.3.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pdt.evaluation.generate.batches import HeldOutBatch
from pdt.evaluation.generate.plans import AddressedPlans
from pdt.evaluation.lines.document import HeldOutChoice
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.protocol.conditions import Condition
from pdt.generation.interventions import edited_bus, fitted_to
from pdt.model.cache import LayerMemory, SegmentList, Taken
from pdt.model.pdt import Frontier, ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.notes.bus import NotesBus
from pdt.notes.visibility import visibility_table
from pdt.objective.token import token_nll
from pdt.training.rollout import roll_out

NLL_DIGITS = 6
"""Of a stored likelihood, in nats."""


class Scorer:
    """One batch under one checkpoint: what lies before the notes runs once for all conditions."""

    def __init__(
        self, model: ParallelDecoder, batch: HeldOutBatch, addressed: AddressedPlans, read: Prompt
    ) -> None:
        self.model, self.batch, self._read = model, batch, read
        self._plans = addressed.in_teacher_order()
        self._frontier: Frontier | None = None
        self._fork_BKTD: Tensor | None = None

    @torch.inference_mode()
    def score(self, condition: Condition) -> list[Likelihoods]:
        """Teacher-force every section on its own lane under the condition. Paper: §7.3."""
        model, documents = self.model, self.batch.documents
        own = [range(model.config.lanes.count)] * len(documents)  # in the teacher's order
        edits = fitted_to(condition.edits_on(documents, own), model)
        assert not any(edit.from_block for edit in edits), "a rollout has one plan from end to end"
        plans = self._plans
        table = visibility_table(model.config.notes.condition, model.config.lanes.count)
        for edit in edits:
            plans, table = edit.edit_plans(plans), edit.edit_may_read(table)

        def edited(bus: NotesBus) -> NotesBus:
            return edited_bus(bus, edits, model)

        tokens_BKT = self.batch.records.section_tokens_BKT
        if self._fork_BKTD is None:
            lower = [[segment] for segment in self._read.lower]
            self._fork_BKTD = model.read_targets(
                lower, self._read.lengths_B, tokens_BKT.clamp(min=0)
            )
        score = _ScoreChoices([document.choices for document in documents])
        rollout = roll_out(
            model,
            self._open(plans),
            tokens_BKT,
            fork_BKTD=self._fork_BKTD,
            may_read_KK=table,
            edit_bus=edited,
            score=score,
        )
        return [
            Likelihoods(
                condition=condition.name,
                record_id=document.record_id,
                nll=tuple(
                    _rounded(rollout.scores_BKT[place, lane, :length])
                    for lane, length in enumerate(document.section_lengths)
                ),
                choices=score.found[place],
            )
            for place, document in enumerate(documents)
        ]

    def _open(self, plans: PlanSet) -> Frontier:
        """A frontier at the end of the prompt; conditions with one plan share its prefill."""
        if plans is not self._plans:
            return self.model.open_lanes(self._read, plans)
        if self._frontier is None:
            self._frontier = self.model.open_lanes(self._read, plans)
        upper: list[LayerMemory] = [SegmentList(memory.past) for memory in self._frontier.upper]
        taken = Taken(len(self._read.lengths_B), self.model.config.lanes.count)
        return replace(self._frontier, upper=upper, taken=taken)


class _ScoreChoices:
    """Token likelihoods, and on the way log p of every alternative of each coined word."""

    def __init__(self, choices: Sequence[Sequence[HeldOutChoice]]) -> None:
        self._choices = choices
        self._start = 0
        self.found: list[dict[str, tuple[float, ...]]] = [{} for _ in choices]

    def __call__(self, logits_BKTV: Tensor, tokens_BKT: Tensor) -> Tensor:
        end = self._start + tokens_BKT.shape[2]
        for place, choices in enumerate(self._choices):
            for choice in choices:
                if self._start <= choice.receiver_token < end:
                    at = choice.receiver_token - self._start
                    log_p = logits_BKTV[place, choice.receiver_lane, at].float().log_softmax(-1)
                    first = torch.tensor([tokens[0] for tokens in choice.alternative_tokens])
                    self.found[place][choice.dependency_id] = _rounded(log_p[first])
        self._start = end
        return token_nll(logits_BKTV, tokens_BKT)


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(round(value, NLL_DIGITS) for value in values.tolist())
