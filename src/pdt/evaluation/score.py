"""Teacher forcing under a condition: the likelihood of every target token, notes edited or not.

Paper: §7.3.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from pdt.evaluation.communication import Likelihoods
from pdt.evaluation.conditions import Condition
from pdt.evaluation.generate import edits_of
from pdt.evaluation.held_out import HeldOutBatch, HeldOutChoice
from pdt.evaluation.plans import AddressedPlans
from pdt.generation.interventions import bind
from pdt.model.pdt import ParallelDecoder
from pdt.notes.bus import NotesBus
from pdt.notes.visibility import visibility_table
from pdt.objective.token import token_nll
from pdt.training.rollout import roll_out

DIGITS = 6
"""Of a stored likelihood, in nats."""


@torch.inference_mode()
def score_batch(
    model: ParallelDecoder, batch: HeldOutBatch, condition: Condition, addressed: AddressedPlans
) -> list[Likelihoods]:
    """Teacher-force every section on its own lane under the condition. Paper: §7.3."""
    records = batch.records
    owners = tuple(document.dependency_owner or 0 for document in batch.documents)
    edits = bind(edits_of(condition, owners), model)
    plans = addressed.in_teacher_order()
    table = visibility_table(model.config.notes.condition, model.config.lanes.count)
    for edit in edits:
        plans, table = edit.edit_plans(plans), edit.edit_may_read(table)

    def edited(bus: NotesBus) -> NotesBus:
        for edit in edits:
            bus = edit.edit_bus(bus, model.note_writer.vq.decode)
        return bus

    prompt = model.read_prompt(
        records.prompt_tokens_BS.clamp(min=0), records.prompt_valid_BS.sum(1)
    )
    score = _ScoreChoices([document.choices for document in batch.documents])
    rollout = roll_out(
        model,
        model.open_lanes(prompt, plans),
        records.section_tokens_BKT,
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
        for place, document in enumerate(batch.documents)
    ]


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
    return tuple(round(value, DIGITS) for value in values.tolist())
