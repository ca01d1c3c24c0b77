"""Packed teacher forcing is round-by-round decoding, with one trunk pass and no copied prompt."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pdt.config import load_config
from pdt.model.cache import SegmentList
from pdt.model.kernels.round import rounds_of
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.training import rollout
from pdt.training.recompute import recompute_activations
from pdt.training.rollout import roll_out
from tests.conftest import open_model
from tests.support.rollouts import open_frontier, plan_of, prompts, roll

LENGTHS = torch.tensor([[14, 3, 9], [8, 12, 1]])
"""With blocks of 4: whole, partial and single-token ends; two lanes shorter than a block."""


def ragged_tokens(model: ParallelDecoder) -> Tensor:
    T = int(LENGTHS.max())
    tokens = torch.randint(model.config.trunk.shape.vocabulary, (*LENGTHS.shape, T))
    return tokens.masked_fill(torch.arange(T) >= LENGTHS[..., None], -1)


def keep_logits(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits


def check_packed_equals_rounds(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans, sections = plan_of(model, tokens, lengths), ragged_tokens(model)
    with torch.no_grad():
        packed = roll_out(
            model, open_frontier(model, tokens, lengths, plans), sections, score=keep_logits
        )
        T, tau = sections.shape[2], model.config.lanes.block_tokens
        prompt = model.read_prompt(tokens, lengths)
        frontier = model.open_lanes(prompt, plans, suffix_tokens=T)
        advance = rounds_of(model, frontier)
        bus, h, logits = model.empty_bus(), frontier.h_BKD[:, :, None], []
        notes = None
        for t in range(T):
            logits.append(model.logits(h))
            h = advance(sections[:, :, t : t + 1].clamp(min=0), notes)
            if (t + 1) % tau == 0:
                block = t // tau
                published = LENGTHS >= t + 1
                bus = bus.commit(block, model.write_notes(h[:, :, 0], published))
                notes = model.read_notes(bus, block + 1)
    real = sections >= 0
    rounds = torch.cat(logits, dim=2)
    torch.testing.assert_close(packed.scores_BKT[real], rounds[real], atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(packed.bus.blocks, bus.blocks, strict=True):
        assert torch.equal(ours.published_BK, theirs.published_BK)
        assert torch.equal(ours.codes_BKM[ours.published_BK], theirs.codes_BKM[ours.published_BK])


@pytest.mark.paper("§6", "§5.2")
def test_packed_teacher_forcing_equals_round_by_round_decoding(model: ParallelDecoder) -> None:
    check_packed_equals_rounds(model)


@pytest.mark.paper("§6")
def test_one_trunk_call_for_whole_lanes_equals_one_a_block(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    sections = torch.randint(model.config.trunk.shape.vocabulary, (2, 3, 16))
    plans = plan_of(model, tokens, lengths)
    states, bus = roll(model, open_frontier(model, tokens, lengths, plans), sections)
    ours = roll_out(model, open_frontier(model, tokens, lengths, plans), sections)
    torch.testing.assert_close(ours.h_BKUD, states[:, :, 3::4], atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(ours.bus.blocks, bus.blocks, strict=True):
        assert torch.equal(mine.codes_BKM, theirs.codes_BKM)


@pytest.mark.paper("§6")
def test_the_trunk_runs_once_over_prompt_and_once_over_targets_outside_autograd(
    model: ParallelDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, ...]] = []
    plain = type(model.trunk).forward

    def counted(self: Any, tokens: Any, *rest: Any) -> Any:
        calls.append(tuple(tokens.shape))
        out = plain(self, tokens, *rest)
        assert not out.requires_grad
        return out

    monkeypatch.setattr(type(model.trunk), "forward", counted)
    tokens, lengths = prompts(model)
    nodes = torch.randn(2, 3, 4, model.config.planner.width)
    plans = PlanSet(nodes, torch.ones(2, 3, 4, dtype=torch.bool), torch.zeros(2, 3))
    ours = roll_out(model, open_frontier(model, tokens, lengths, plans), ragged_tokens(model))
    assert calls == [(2, 1, 9), (2, 3, 14)]
    ours.scores_BKT.sum().backward()
    assert all(p.grad is None for p in model.trunk.parameters())


@pytest.mark.paper("§5.2")
def test_padding_and_the_other_documents_change_nothing(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans, sections = plan_of(model, tokens, lengths), ragged_tokens(model)
    batch = roll_out(model, open_frontier(model, tokens, lengths, plans), sections)
    for row, length in enumerate(lengths.tolist()):
        own = slice(row, row + 1)
        alone_plan = PlanSet(plans.nodes_BKNP[own], plans.valid_BKN[own], plans.scores_BK[own])
        alone = sections[own, :, : int(LENGTHS[row].max())]
        frontier = open_frontier(model, tokens[own, :length], lengths[own], alone_plan)
        single = roll_out(model, frontier, alone)
        width = alone.shape[2]
        torch.testing.assert_close(
            batch.scores_BKT[own, :, :width], single.scores_BKT, atol=1e-5, rtol=1e-5
        )
        assert (batch.scores_BKT[own, :, width:] == 0).all()


@pytest.mark.paper("§6")
def test_a_partial_block_ends_at_its_last_token(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans, sections = plan_of(model, tokens, lengths), ragged_tokens(model)
    ours = roll_out(model, open_frontier(model, tokens, lengths, plans), sections)
    frontier = open_frontier(model, tokens, lengths, plans)
    states, _ = roll(model, frontier, sections[:, :, :3].clamp(min=0))
    torch.testing.assert_close(ours.h_BKUD[0, 1, 0], states[0, 1, 2], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.h_BKUD[1, 2, 0], states[1, 2, 0], atol=1e-5, rtol=1e-5)


def test_of_a_model_that_reads_no_notes_one_call_takes_all_blocks_and_equals_one_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = open_model(load_config("tiny", overrides=["notes.condition=no_dynamic"]))
    tokens, lengths = prompts(model)
    plans, sections = plan_of(model, tokens, lengths), ragged_tokens(model)
    nobody = torch.zeros(3, 3, dtype=torch.bool)
    calls, plain = [], ParallelDecoder.advance_stacks

    def counted(self: Any, frontier: Any, h: Tensor, notes: Any) -> Any:
        calls.append(h.shape[2])
        return plain(self, frontier, h, notes)

    monkeypatch.setattr(ParallelDecoder, "advance_stacks", counted)
    at_once, a_block = (
        roll_out(
            model,
            open_frontier(model, tokens, lengths, plans),
            sections,
            may_read_KK=table,
        )
        for table in (None, nobody)
    )
    assert calls == [14, 4, 4, 4, 2]
    torch.testing.assert_close(at_once.scores_BKT, a_block.scores_BKT, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(at_once.h_BKUD, a_block.h_BKUD, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(at_once.bus.blocks, a_block.bus.blocks, strict=True):
        assert torch.equal(ours.published_BK, theirs.published_BK)
        sent = ours.published_BK
        assert torch.equal(ours.codes_BKM[sent], theirs.codes_BKM[sent])


@pytest.mark.paper("§6")
def test_the_prompts_upper_keys_are_never_copied(
    model: ParallelDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, lengths = prompts(model)
    frontier = open_frontier(model, tokens, lengths)
    kept = {id(m): (m.past[0].k.data_ptr(), m.past[0].v.data_ptr()) for m in frontier.upper}
    plain, seen = SegmentList.extend, []

    def watched(self: Any, k: Any, v: Any) -> Any:
        segments = plain(self, k, v)
        if id(self) in kept:
            seen.append((segments[0].k.data_ptr(), segments[0].v.data_ptr()) == kept[id(self)])
        return segments

    monkeypatch.setattr(SegmentList, "extend", watched)
    roll_out(model, frontier, ragged_tokens(model))
    assert len(seen) == 4 * len(frontier.upper) and all(seen)


@pytest.mark.paper("Appendix A")
def test_recomputed_activations_give_the_same_values_and_gradients(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    sections = ragged_tokens(model)
    found = []
    for recompute in (False, True):
        recompute_activations(model, recompute)
        model.zero_grad()
        plans = plan_of(model, tokens, lengths)
        ours = roll_out(model, open_frontier(model, tokens, lengths, plans), sections)
        (ours.scores_BKT.sum() + ours.h_BKUD.square().mean()).backward()
        gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        found.append((ours.scores_BKT.detach(), gradients))
    (plain, expected), (again, gradients) = found
    assert torch.equal(plain, again)
    assert gradients.keys() == expected.keys() and any("snc" in name for name in gradients)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-5)


def test_recomputation_holds_fewer_activations(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    sections = ragged_tokens(model)
    plans = plan_of(model, tokens, lengths)
    held = []
    for recompute in (False, True):
        recompute_activations(model, recompute)
        total = [0]

        def keep(x: Tensor, total: list[int] = total) -> Tensor:
            total[0] += x.numel()
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            roll_out(model, open_frontier(model, tokens, lengths, plans), sections)
        held.append(total[0])
    assert held[1] < held[0] / 2


def the_first_token_is_scored_from_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollout, "scoring_states", lambda before, h: h)


def blocks_read_no_notes(patch: pytest.MonkeyPatch) -> None:
    plain = ParallelDecoder.advance_stacks
    patch.setattr(
        ParallelDecoder,
        "advance_stacks",
        lambda self, frontier, h, notes: plain(self, frontier, h, None),
    )


def every_block_stands_at_the_first_position(patch: pytest.MonkeyPatch) -> None:
    plain = ParallelDecoder.advance_stacks

    def restarted(self: Any, frontier: Any, h: Any, notes: Any) -> Any:
        frontier.taken.add_everywhere(-frontier.taken.most)
        return plain(self, frontier, h, notes)

    patch.setattr(ParallelDecoder, "advance_stacks", restarted)


@pytest.mark.parametrize(
    "mutate",
    [
        the_first_token_is_scored_from_itself,
        blocks_read_no_notes,
        every_block_stands_at_the_first_position,
    ],
    ids=lambda f: f.__name__,
)
def test_a_broken_rollout_fails_its_check(
    model: ParallelDecoder,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        check_packed_equals_rounds(model)


@pytest.mark.paper("§6")
def test_what_was_read_lies_so_that_products_read_it_in_place(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    frontier = open_frontier(model, tokens, lengths)
    roll_out(model, frontier, ragged_tokens(model))
    for memory in frontier.upper:
        for segment in memory.past:
            for x in (segment.k, segment.v):
                assert x.flatten(0, 2).data_ptr() == x.data_ptr(), "a product would copy it"
