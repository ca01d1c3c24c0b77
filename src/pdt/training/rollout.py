"""Packed teacher forcing: one block of all lanes a call, all notes commit, then the next block.

The trunk has run over all target tokens before the first block. Block b reads the prompt's upper
keys and values where they lie, the lane's own earlier blocks, and the notes of blocks before b.
Of a model whose lanes read no notes nothing but causality binds a block to those before it, and one
call takes them all.

Paper: §6, §5.2, Fig. 3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.model.pdt import Frontier, ParallelDecoder
from pdt.model.product import grouped_by
from pdt.notes.bus import NotesBus
from pdt.notes.visibility import visibility_table
from pdt.objective.token import scoring_states, token_nll_of_states
from pdt.terms import NotesCondition
from pdt.training.recompute import run_again
from pdt.training.weight_gradients import Gathering

Score = Callable[[Tensor, Tensor], Tensor]
"""What is kept of some tokens' logits; the logits themselves are given up."""
EditBus = Callable[[NotesBus], NotesBus]
"""What a block reads instead of the notes that were written."""


@dataclass(frozen=True)
class Rollout:
    """What a rollout of whole sections leaves for the losses."""

    scores_BKT: Tensor
    """-log p of each token, 0 on padding (or what `score` returned)."""
    h_BKUD: Tensor
    """The state of each block's last token; of the lane's last token in a partial block."""
    bus: NotesBus


def roll_out(
    model: ParallelDecoder,
    frontier: Frontier,
    tokens_BKT: Tensor,
    *,
    fork_BKTD: Tensor | None = None,
    may_read_KK: Tensor | None = None,
    edit_bus: EditBus = lambda bus: bus,
    score: Score | None = None,
) -> Rollout:
    """Write the target sections from an open frontier; tokens below 0 pad a shorter lane.

    `edit_bus` intervenes on what lanes read; what they write is committed as it is.
    `fork_BKTD` are the tokens' states at the fork, where the trunk has read them already.

    Paper: §6.
    """
    tau, lanes = model.config.lanes.block_tokens, model.config.lanes.count
    condition = model.config.notes.condition
    nobody_reads = condition is NotesCondition.NO_DYNAMIC and may_read_KK is None
    if may_read_KK is None:
        may_read_KK = visibility_table(condition, lanes)
    lengths_BK = (tokens_BKT >= 0).sum(-1)
    if fork_BKTD is None:
        lower = [memory.past for memory in frontier.lower]
        start_B = frontier.starts()[:, 0]
        fork_BKTD = model.read_targets(lower, start_B, tokens_BKT.clamp(min=0))
    bus, before_BKD = model.empty_bus(), frontier.h_BKD
    scores, finals, gathering = [], [], Gathering()
    at_once = max(tau, tokens_BKT.shape[2]) if nobody_reads else tau
    for start in range(0, tokens_BKT.shape[2], at_once):
        tokens = tokens_BKT[:, :, start : start + at_once]
        notes = model.read_notes(edit_bus(bus), start // tau, may_read_KK)
        with grouped_by(gathering):
            fork = fork_BKTD[:, :, start : start + at_once]
            h = model.advance_stacks(frontier, fork, notes)
        scores.append(_scored(model, score, scoring_states(before_BKD, h), tokens))
        before_BKD = h[:, :, -1]
        for block, states in enumerate(h.split(tau, dim=2), start=start // tau):
            finals.append(_last_states(states, lengths_BK - block * tau))
            if states.shape[2] == tau:
                complete_BK = lengths_BK >= (block + 1) * tau
                bus = bus.commit(block, model.write_notes(states[:, :, -1], complete_BK))
    return Rollout(torch.cat(scores, dim=2), torch.stack(finals, dim=2), bus)


def _scored(
    model: ParallelDecoder, score: Score | None, h_BKTD: Tensor, tokens_BKT: Tensor
) -> Tensor:
    """-log p of the tokens, or what the caller's `score` keeps of their logits."""
    if score is None:
        trunk = model.trunk
        return token_nll_of_states(trunk.norm(h_BKTD), trunk.head, tokens_BKT)

    def run(h_BKTD: Tensor) -> Tensor:
        return score(model.logits(h_BKTD), tokens_BKT)

    return run_again(model, run, h_BKTD)


def _last_states(h_BKTD: Tensor, lengths_BK: Tensor) -> Tensor:
    """The state of each lane's last real token among these; `lengths_BK` may lie outside."""
    T, D = h_BKTD.shape[2:]
    last = lengths_BK.clamp(1, T) - 1
    return h_BKTD.gather(2, last[..., None, None].expand(-1, -1, 1, D)).squeeze(2)
