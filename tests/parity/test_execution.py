"""Every way to run the lanes is the same computation."""

import copy

import pytest
import torch

from pdt.model.attention import Segment, attend
from pdt.model.cache import SegmentList
from pdt.model.kernels.round import rounds_of
from pdt.model.layer import DecoderLayer
from pdt.model.linear import Bank
from pdt.model.pdt import ParallelDecoder
from pdt.model.rope import rotary
from tests.conftest import open_model
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll


def plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, valid: torch.Tensor
) -> torch.Tensor:
    """One query at a time over an explicit list of keys: the definition, in loops."""
    B, K, H, T, X = q.shape
    G, S = k.shape[2:4]
    out = torch.zeros_like(q)
    for b, lane, h, t in torch.cartesian_prod(*(torch.arange(n) for n in (B, K, H, T))):
        g = h // (H // G)
        seen = valid[b].clone()
        seen[S - T + t + 1 :] = False
        scores = (k[b, lane, g, seen] @ q[b, lane, h, t]) / X**0.5
        out[b, lane, h, t] = torch.softmax(scores, 0) @ v[b, lane, g, seen]
    return out


@pytest.mark.paper("§3.1", "Appendix A")
@pytest.mark.parametrize("queries", [1, 5])
def test_attention_over_segments_equals_plain_attention_over_the_expanded_cache(
    queries: int,
) -> None:
    B, K, H, G, X, prompt, past = 2, 3, 4, 2, 8, 7, 6
    valid = torch.arange(prompt) < torch.tensor([[7], [4]])
    shared = Segment(torch.randn(B, 1, G, prompt, X), torch.randn(B, 1, G, prompt, X), valid)
    block = Segment(torch.randn(B, K, G, past, X), torch.randn(B, K, G, past, X))
    own = Segment(torch.randn(B, K, G, queries, X), torch.randn(B, K, G, queries, X))
    q = torch.randn(B, K, H, queries, X)
    k, v = (
        torch.cat([getattr(s, name).expand(-1, K, -1, -1, -1) for s in (shared, block, own)], dim=3)
        for name in ("k", "v")
    )
    everything = torch.cat([valid, torch.ones(B, past + queries, dtype=torch.bool)], dim=1)
    expected = plain_attention(q, k, v, everything)
    torch.testing.assert_close(attend(q, [shared, block, own]), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.paper("Appendix A")
@pytest.mark.parametrize("tile", [1, 3, 512])
def test_query_tiles_change_no_value(tile: int) -> None:
    q = torch.randn(1, 3, 4, 10, 8)
    shared = Segment(torch.randn(1, 1, 2, 5, 8), torch.randn(1, 1, 2, 5, 8))
    own = Segment(torch.randn(1, 3, 2, 13, 8), torch.randn(1, 3, 2, 13, 8))
    expected = attend(q, [shared, own], tile=10)
    torch.testing.assert_close(attend(q, [shared, own], tile=tile), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.paper("§3.1")
def test_the_prompt_below_the_fork_exists_once(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    prompt = model.read_prompt(tokens, lengths)
    frontier = model.open_lanes(prompt, plan_of(model, tokens, lengths), suffix_tokens=8)
    model.advance(frontier, lane_tokens(model, 2, blocks=1), None)
    for segment, memory in zip(prompt.lower, frontier.lower, strict=True):
        assert segment.k.shape[1] == 1
        assert memory.past[0].k.data_ptr() == segment.k.data_ptr()


@pytest.mark.paper("§3.3")
def test_grouped_layers_equal_three_separate_stacks_in_value_and_gradient() -> None:
    shape = open_model().config.trunk.shape
    grouped = DecoderLayer(shape, Bank(3))
    for parameter in grouped.parameters():
        parameter.data.normal_(std=0.3)
    singles = [DecoderLayer(shape) for _ in range(3)]
    for lane, single in enumerate(singles):
        single.load_state_dict({n: p[lane] for n, p in grouped.state_dict().items()})
    h = torch.randn(2, 3, 5, shape.width, requires_grad=True)
    apart = h.detach().clone().requires_grad_()
    turn = rotary(shape.rope, shape.head_width, torch.arange(5).expand(2, 1, 5), torch.float32)
    together = grouped(h, turn, SegmentList())
    separate = torch.cat(
        [
            single(apart[:, lane : lane + 1], turn, SegmentList())
            for lane, single in enumerate(singles)
        ],
        dim=1,
    )
    torch.testing.assert_close(together, separate, atol=1e-5, rtol=1e-5)
    weight = torch.randn_like(together)
    (together * weight).sum().backward()
    (separate * weight).sum().backward()
    torch.testing.assert_close(h.grad, apart.grad, atol=1e-5, rtol=1e-4)
    for name, parameter in grouped.named_parameters():
        expected = torch.stack([gradient(s, name) for s in singles])
        torch.testing.assert_close(parameter.grad, expected, atol=1e-4, rtol=1e-4)


def gradient(layer: DecoderLayer, name: str) -> torch.Tensor:
    found = layer.get_parameter(name).grad
    assert found is not None, name
    return found


@pytest.mark.mechanism
@pytest.mark.paper("§3.3", "§3.6")
def test_cached_equals_uncached(model: ParallelDecoder) -> None:
    """Token by token behind a cache = each lane's whole text read as a prompt of its own."""
    tokens, lengths = prompts(model, (7,))
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 1, blocks=2)
    with torch.no_grad():
        frontier = model.open_lanes(model.read_prompt(tokens), plans, suffix_tokens=8)
        advance = rounds_of(model, frontier)
        cached = torch.cat([advance(token, None) for token in lanes.split(1, dim=2)], dim=2)
        for lane in range(3):
            whole = torch.cat([tokens, lanes[:, lane]], dim=1)
            uncached = model.open_lanes(model.read_prompt(whole), plans)
            torch.testing.assert_close(
                cached[:, lane, -1], uncached.h_BKD[:, lane], atol=1e-5, rtol=1e-5
            )


@pytest.mark.paper("§6", "§5.2")
def test_a_block_in_one_call_equals_its_tokens_one_by_one_across_barriers(
    model: ParallelDecoder,
) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=4)
    whole, bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    frontier = open_frontier(model, tokens, lengths, plans)
    single, other = roll(model, frontier, lanes, rounds=rounds_of(model, frontier))
    torch.testing.assert_close(whole, single, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(bus.blocks, other.blocks, strict=True):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)


@pytest.mark.paper("§3.6")
def test_a_batch_of_documents_equals_each_alone(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model, (11, 5, 8))
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 3, blocks=2)
    batch, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    for row, length in enumerate(lengths.tolist()):
        alone_tokens = tokens[row : row + 1, :length]
        plan = copy.copy(plan_of(model, alone_tokens, lengths[row : row + 1]))
        frontier = open_frontier(model, alone_tokens, lengths[row : row + 1], plan)
        alone, _ = roll(model, frontier, lanes[row : row + 1])
        torch.testing.assert_close(batch[row], alone[0], atol=1e-5, rtol=1e-5)
