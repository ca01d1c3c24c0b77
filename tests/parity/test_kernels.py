"""The compiled decode path equals the torch path, row by row and round by round."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from pdt.config import PdtConfig, load_config
from pdt.model import kernels
from pdt.model.kernels.build import library
from pdt.model.kernels.round import NativeRound, rounds_of
from tests.conftest import open_model
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll

pytestmark = pytest.mark.skipif(
    library() is None, reason="no C compiler here: torch's own products are used"
)

FAMILIES = {
    "qwen3": [],
    "qwen2": ["trunk.shape.family=qwen2"],
    "llama, odd widths": [
        "trunk.shape.family=llama",
        "trunk.shape.width=36",
        "trunk.shape.feed_forward=51",
        "trunk.shape.head_width=6",
    ],
    "one lane": ["lanes.count=1"],
    "six lanes, untied": ["lanes.count=6", "trunk.shape.tied_head=false"],
    "reads in the state's own units": ["reads.in_state_units=true"],
    "low rank": ["lanes.bank=low_rank", "lanes.rank=3"],
    "low rank, qwen2, six lanes": [
        "trunk.shape.family=qwen2",
        "lanes.count=6",
        "lanes.bank=low_rank",
        "lanes.rank=11",
    ],
}


ONES = torch.ones(3, 6, dtype=torch.bool)


def config_of(family: str) -> PdtConfig:
    return load_config("tiny", overrides=FAMILIES[family])


@pytest.mark.paper("§3.6", "Fig. 2")
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_rounds_equal_the_layers_of_the_model_across_barriers(family: str) -> None:
    """Documents of different lengths, some plan nodes invalid, notes from several blocks."""
    model = open_model(config_of(family))
    tokens, lengths = prompts(model, (9, 4, 7))
    plans = plan_of(model, tokens, lengths)
    plans.valid_BKN[1, :, 2:] = False
    plans.valid_BKN[2, 0] = False
    lanes = lane_tokens(model, 3, blocks=5)
    with torch.no_grad():
        reference, bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
        prompt = model.read_prompt(tokens, lengths)
        frontier = model.open_lanes(prompt, plans, suffix_tokens=lanes.shape[2])
        rounds = rounds_of(model, frontier)
        compiled, other = roll(model, frontier, lanes, rounds=rounds)
    assert isinstance(rounds, NativeRound), "the compiled round did not run"
    torch.testing.assert_close(compiled, reference, atol=2e-5, rtol=1e-5)
    for ours, theirs in zip(bus.blocks, other.blocks, strict=True):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)


@pytest.mark.paper("§3.6")
@pytest.mark.parametrize("family", FAMILIES)
def test_several_tokens_at_once_are_the_same_bits_as_one_a_round(family: str) -> None:
    """Lanes that take different numbers, or none; states and caches, through plans and notes."""
    model = open_model(config_of(family))
    tokens, lengths = prompts(model, (9, 4, 7))
    plans = plan_of(model, tokens, lengths)
    B, K = 3, model.config.lanes.count
    lanes = lane_tokens(model, B, blocks=3)
    with torch.no_grad():
        prompt = model.read_prompt(tokens, lengths)
        written = model.write_notes(torch.randn(B, K, model.config.trunk.shape.width), ONES[:, :K])
        notes = model.read_notes(model.empty_bus().commit(0, written), 1)
        one, several = (model.open_lanes(prompt, plans, suffix_tokens=12) for _ in range(2))
        single, run = NativeRound(model, one), NativeRound(model, several)
        expected = torch.cat([single(token, notes) for token in lanes.split(1, dim=2)], dim=2)
        chosen = torch.Generator().manual_seed(3)
        found = torch.zeros_like(expected)
        while several.taken.most < 12 or not several.taken.same:
            had = torch.tensor(several.taken.counts_BK)
            counts = torch.randint(0, 5, (B, K), generator=chosen).minimum(12 - had)
            if not counts.any():
                continue
            padded = torch.zeros(B, K, 4, dtype=torch.long)
            places = [(b, k, t) for b in range(B) for k in range(K) for t in range(counts[b, k])]
            for b, k, t in places:
                padded[b, k, t] = lanes[b, k, had[b, k] + t]
            h = run(padded, notes, counts.tolist())
            for b, k, t in places:
                found[b, k, had[b, k] + t] = h[b, k, t]
    assert torch.equal(found, expected)
    for ours, theirs in zip(
        [*one.lower, *one.upper], [*several.lower, *several.upper], strict=True
    ):
        for left, right in zip(ours.past, theirs.past, strict=True):
            assert torch.equal(left.k, right.k)
            assert torch.equal(left.v, right.v)


def test_mixing_compiled_rounds_and_torch_blocks_is_the_same_cache() -> None:
    """A block in one call after single rounds: both write the same buffers."""
    model = open_model()
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=3)
    with torch.no_grad():
        reference = model.advance(open_frontier(model, tokens, lengths, plans), lanes, None)
        frontier = model.open_lanes(model.read_prompt(tokens, lengths), plans, suffix_tokens=12)
        rounds, several = NativeRound(model, frontier), partial(model.advance, frontier)
        runs: list[Callable[..., torch.Tensor]] = [rounds, several, rounds, several]
        parts = [
            run(part, None)
            for run, part in zip(runs, lanes.split([1, 3, 1, 7], dim=2), strict=True)
        ]
    torch.testing.assert_close(torch.cat(parts, dim=2), reference, atol=2e-5, rtol=1e-5)


def test_a_full_suffix_is_an_error_and_not_a_wrong_write() -> None:
    model = open_model()
    tokens, lengths = prompts(model)
    with torch.no_grad():
        frontier = model.open_lanes(
            model.read_prompt(tokens, lengths), plan_of(model, tokens, lengths), suffix_tokens=2
        )
        token = lane_tokens(model, 2, blocks=1)[:, :, :1]
        rounds = NativeRound(model, frontier)
        rounds(token, None)
        rounds(token, None)
        with pytest.raises(IndexError, match="2 tokens a lane, asked for 3"):
            rounds(token, None)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 9, 16])
@pytest.mark.parametrize(("outputs", "inputs"), [(5, 3), (64, 48), (131, 257)])
def test_the_few_rows_product_equals_torch(rows: int, outputs: int, inputs: int) -> None:
    x, weight, bias = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    torch.testing.assert_close(
        kernels.linear(x, weight, bias), F.linear(x, weight, bias), atol=1e-4, rtol=1e-5
    )
    grouped = torch.randn(3, outputs, inputs)
    lanes = torch.randn(3, rows, inputs)
    torch.testing.assert_close(
        kernels.grouped_linear(lanes, grouped),
        torch.einsum("kri,koi->kro", lanes, grouped),
        atol=1e-4,
        rtol=1e-5,
    )


def test_a_row_of_the_product_does_not_depend_on_its_neighbours() -> None:
    """Bit for bit, so a lane's logits do not change with the batch it decodes in."""
    x, weight = torch.randn(16, 100), torch.randn(70, 100)
    alone = torch.cat([kernels.linear(row[None], weight) for row in x])
    for rows in range(1, 17):
        assert torch.equal(kernels.linear(x[:rows], weight), alone[:rows])


def test_the_kernel_is_never_used_where_a_gradient_is_wanted() -> None:
    x = torch.randn(3, 8, requires_grad=True)
    weight = torch.randn(4, 8, requires_grad=True)
    kernels.linear(x, weight).sum().backward()
    assert x.grad is not None
    assert weight.grad is not None
