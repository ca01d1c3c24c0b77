"""The bus learns to carry one bit that no other path could carry.

The smallest task of its kind: every lane ends its first block with one of two words, and repeats in
its second block the word of the next lane. Nothing but that lane's note tells which.
"""

import pytest
import torch
from torch import Tensor

from pdt.config import load_config
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.visibility import visibility_table
from pdt.objective.token import token_loss
from pdt.objective.total import total_loss
from pdt.terms import Loss, NotesCondition
from pdt.training.codebooks import codes_from
from pdt.training.losses import note_losses
from pdt.training.rollout import Rollout, roll_out

ONE_BIT = 0.693
DEPENDENT = 6
"""The place of the word that repeats a sibling's."""
B, K = 32, 3


def documents() -> Tensor:
    words = torch.randint(10, 12, (B, K))
    sections = torch.randint(5, 10, (B, K, 8))
    sections[:, :, 3] = words
    sections[:, :, DEPENDENT] = words.roll(-1, dims=1)
    return sections


def write(
    model: ParallelDecoder, sections: Tensor, may_read: NotesCondition | None = None
) -> Rollout:
    planner = model.config.planner
    plans = PlanSet(
        torch.zeros(B, K, planner.nodes, planner.width),
        torch.ones(B, K, planner.nodes, dtype=torch.bool),
        torch.zeros(B, K),
    )
    frontier = model.open_lanes(model.read_prompt(torch.full((B, 6), 7)), plans)
    table = None if may_read is None else visibility_table(may_read, K)
    return roll_out(model, frontier, sections, may_read_KK=table)


def trained(condition: NotesCondition, steps: int = 300) -> ParallelDecoder:
    torch.manual_seed(0)
    config = load_config(
        "tiny",
        overrides=[
            f"notes.condition={condition}",
            "notes.writer_norm=true",
            "notes.codebooks=4",
            "notes.codes=16",
            "reads.notes_gate=-2",
        ],
    )
    model = random_model(config)
    model.trunk.embed_tokens.weight.data.mul_(25)  # a frozen head that can be sure of a word
    with torch.no_grad():
        blocks = [block for _ in range(4) for block in write(model, documents()).bus.blocks]
    written = torch.cat([b.written_BKE for b in blocks if b.written_BKE is not None])
    codes_from(model, written.flatten(0, 1), seed=0)
    learned = [p for n, p in model.named_parameters() if not n.startswith("trunk.")]
    optimizer = torch.optim.AdamW(learned, lr=3e-3)
    everywhere = torch.ones(B, K, 8, dtype=torch.bool)
    depends = (torch.arange(8) == DEPENDENT).expand(B, K, 8)
    for _ in range(steps):
        rollout = write(model, documents())
        token = token_loss(rollout.scores_BKT, everywhere, (depends, 10.0))
        parts = {Loss.TOKEN: token} | note_losses(model, rollout.bus).parts
        total_loss(parts, config.objective).backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model


@torch.no_grad()
def dependency_nll(model: ParallelDecoder, may_read: NotesCondition | None = None) -> float:
    return float(write(model, documents(), may_read).scores_BKT[:, :, DEPENDENT].mean())


@pytest.mark.slow
@pytest.mark.paper("§3.5", "Eq. 10")
def test_the_bus_learns_a_bit_that_self_only_cannot() -> None:
    bus, alone = trained(NotesCondition.BUS), trained(NotesCondition.SELF_ONLY)
    assert dependency_nll(bus) < 0.1 * ONE_BIT
    assert dependency_nll(alone) > 0.9 * ONE_BIT
    # The same weights without notes know nothing: the bit came over the bus and no other way.
    assert dependency_nll(bus, NotesCondition.NO_DYNAMIC) > 0.9 * ONE_BIT
