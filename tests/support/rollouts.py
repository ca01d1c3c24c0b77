"""Small rollouts that many tests run: a batch of prompts, blocks of tokens, barriers between."""

from collections.abc import Callable

import torch
from torch import Tensor

from pdt.model.gated_read import ReadMemory
from pdt.model.kernels.round import Round
from pdt.model.pdt import Frontier, ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.bus import NotesBus

Edit = Callable[[NotesBus], NotesBus]


def prompts(model: ParallelDecoder, lengths: tuple[int, ...] = (9, 6)) -> tuple[Tensor, Tensor]:
    vocabulary = model.config.trunk.shape.vocabulary
    return torch.randint(vocabulary, (len(lengths), max(lengths))), torch.tensor(lengths)


def lane_tokens(model: ParallelDecoder, documents: int, blocks: int) -> Tensor:
    config = model.config
    T = config.lanes.block_tokens * blocks
    return torch.randint(config.trunk.shape.vocabulary, (documents, config.lanes.count, T))


def plan_of(model: ParallelDecoder, tokens_BT: Tensor, lengths_B: Tensor) -> PlanSet:
    """The learned plan with every node valid, so that no test rests on a random validity."""
    learned = model.plan(model.read_prompt(tokens_BT, lengths_B))
    return PlanSet(learned.nodes_BKNP, torch.ones_like(learned.valid_BKN), learned.scores_BK)


def open_frontier(
    model: ParallelDecoder, tokens_BT: Tensor, lengths_B: Tensor, plans: PlanSet | None = None
) -> Frontier:
    plans = plans or plan_of(model, tokens_BT, lengths_B)
    return model.open_lanes(model.read_prompt(tokens_BT, lengths_B), plans)


def roll(
    model: ParallelDecoder,
    frontier: Frontier,
    tokens_BKT: Tensor,
    *,
    may_read_KK: Tensor | None = None,
    edit_bus: Edit = lambda bus: bus,
    rounds: Round | None = None,
) -> tuple[Tensor, NotesBus]:
    """Teacher-forced blocks with a barrier after each: a block a call, or `rounds` of one token."""
    block_tokens = model.config.lanes.block_tokens
    bus, states = model.empty_bus(), []
    everyone = torch.ones(tokens_BKT.shape[:2], dtype=torch.bool)
    for block, tokens in enumerate(tokens_BKT.split(block_tokens, dim=2)):
        notes: list[ReadMemory] | None = model.read_notes(edit_bus(bus), block, may_read_KK)
        if rounds is None:
            h = model.advance(frontier, tokens, notes)
        else:
            h = torch.cat([rounds(token, notes) for token in tokens.split(1, dim=2)], dim=2)
        states.append(h)
        if h.shape[2] == block_tokens:
            bus = bus.commit(block, model.write_notes(h[:, :, -1], everyone))
    return torch.cat(states, dim=2), bus
