"""What may and may not pass between lanes."""

from itertools import permutations

import pytest
import torch
from torch import Tensor

from pdt.config import load_config
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from tests.conftest import open_model
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll

BLOCK = load_config("tiny").lanes.block_tokens


@pytest.mark.mechanism
@pytest.mark.paper("§2.2", "Eq. 1", "Fig. 3")
def test_same_round_tokens_never_observe_one_another(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=2)
    changed = lanes.clone()
    changed[:, 0, :BLOCK] = (changed[:, 0, :BLOCK] + 1) % model.config.trunk.shape.vocabulary
    before, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    after, _ = roll(model, open_frontier(model, tokens, lengths, plans), changed)
    assert torch.equal(before[:, 1:, :BLOCK], after[:, 1:, :BLOCK]), "a sibling saw the block"
    assert not torch.allclose(before[:, 0, :BLOCK], after[:, 0, :BLOCK]), "the lane did not"


@pytest.mark.mechanism
@pytest.mark.paper("§3.5", "Eq. 1", "Fig. 3")
def test_a_sibling_token_changes_nothing_before_the_next_block_and_something_after(
    model: ParallelDecoder,
) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=2)
    before, bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    for shift in range(1, 40, 3):  # until the change reaches the codes: eight of them are few
        changed = lanes.clone()
        changed[:, 0, :BLOCK] = (changed[:, 0, :BLOCK] + shift) % 96
        after, other = roll(model, open_frontier(model, tokens, lengths, plans), changed)
        if not torch.equal(bus.blocks[0].codes_BKM[:, 0], other.blocks[0].codes_BKM[:, 0]):
            break
    else:
        raise AssertionError("no change of a lane's tokens ever changed its note")
    # The first token of block 1 is fed in block 1, so its state already reads block 0's notes.
    assert not torch.allclose(before[:, 1:, BLOCK:], after[:, 1:, BLOCK:], atol=1e-6)


@pytest.mark.mechanism
@pytest.mark.paper("§3.4", "Eq. 4", "Fig. 2")
def test_a_lane_reads_only_its_own_plan(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    nodes = plans.nodes_BKNP.clone()
    nodes[:, 2] += torch.randn_like(nodes[:, 2])
    edited = PlanSet(nodes, plans.valid_BKN, plans.scores_BK)
    lanes = lane_tokens(model, 2, blocks=1)
    before, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    after, _ = roll(model, open_frontier(model, tokens, lengths, edited), lanes)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


@pytest.mark.mechanism
@pytest.mark.paper("§3.4", "Eq. 3")
def test_an_invalid_plan_node_is_never_read(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    valid = plans.valid_BKN.clone()
    valid[:, :, -1] = False
    nodes = plans.nodes_BKNP.clone()
    nodes[:, :, -1] += 5.0
    lanes = lane_tokens(model, 2, blocks=1)
    views = [PlanSet(n, valid, plans.scores_BK) for n in (plans.nodes_BKNP, nodes)]
    before, after = (
        roll(model, open_frontier(model, tokens, lengths, view), lanes)[0] for view in views
    )
    assert torch.equal(before, after)


@pytest.mark.mechanism
@pytest.mark.paper("§2.1", "§3.3")
def test_permuting_lanes_with_their_plans_and_tokens_permutes_the_output(
    model: ParallelDecoder,
) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=3)
    before, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    moved = open_model(model.config)
    moved.load_state_dict(model.state_dict())
    lane_of_new = torch.tensor([2, 0, 1])
    for name, parameter in moved.named_parameters():
        if (name.startswith("lanes.") and ".decoder." in name) or name.endswith("producer.weight"):
            parameter.data.copy_(parameter.data[lane_of_new].clone())
    moved_plans = PlanSet(
        plans.nodes_BKNP[:, lane_of_new], plans.valid_BKN[:, lane_of_new], plans.scores_BK
    )
    frontier = open_frontier(moved, tokens, lengths, moved_plans)
    after, _ = roll(moved, frontier, lanes[:, lane_of_new])
    torch.testing.assert_close(before[:, lane_of_new], after, atol=1e-5, rtol=1e-5)


@pytest.mark.mechanism
@pytest.mark.paper("§3.3", "Fig. 1")
def test_a_lanes_gradient_touches_only_its_own_slice(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    h, _ = roll(model, open_frontier(model, tokens, lengths), lane_tokens(model, 2, blocks=1))
    model.logits(h[:, 1]).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        if name.startswith("lanes.") and ".decoder." in name:
            assert parameter.grad is not None, name
            moved = parameter.grad.flatten(1).abs().sum(1)
            assert moved[1] > 0, name
            assert moved[0] == moved[2] == 0, name


@pytest.mark.mechanism
@pytest.mark.paper("§3.1", "Fig. 1")
def test_no_gradient_reaches_the_trunk(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    h, _ = roll(model, open_frontier(model, tokens, lengths), lane_tokens(model, 2, blocks=2))
    model.logits(h).square().sum().backward()
    assert all(p.grad is None and not p.requires_grad for p in model.trunk.parameters())


@pytest.mark.paper("Eq. 4")
def test_a_read_in_state_units_asks_alike_and_answers_in_proportion() -> None:
    """Of a state ten times as large the answer is ten times as large; in plain units it is not."""

    def answers(units: str) -> tuple[Tensor, Tensor]:
        model = open_model(load_config("tiny", overrides=[f"reads.in_state_units={units}"]))
        tokens, lengths = prompts(model)
        read = model.lane_layers[0].plan_kv
        memory = model.read_plans(plan_of(model, tokens, lengths))[0]
        h_BKTD = torch.randn(2, 3, 5, model.config.trunk.shape.width)
        with torch.no_grad():
            return read(h_BKTD, memory), read(10 * h_BKTD, memory)

    small, large = answers("true")
    torch.testing.assert_close(10 * small, large, atol=1e-5, rtol=1e-4)
    small, large = answers("false")
    assert not torch.allclose(10 * small, large, rtol=0.1)


@pytest.mark.paper("§3.2", "Eq. 2")
def test_the_planner_does_not_depend_on_generated_tokens(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    prompt = model.read_prompt(tokens, lengths)
    before = model.plan(prompt)
    frontier = model.open_lanes(prompt, before)
    roll(model, frontier, lane_tokens(model, 2, blocks=2))
    after = model.plan(prompt)
    assert torch.equal(before.nodes_BKNP, after.nodes_BKNP)
    assert torch.equal(before.scores_BK, after.scores_BK)


@pytest.mark.paper("§3.2", "Eq. 2")
def test_the_plan_is_of_the_prompt_alone_and_not_of_its_padding(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model, (9, 6))
    both = model.plan(model.read_prompt(tokens, lengths))
    alone = model.plan(model.read_prompt(tokens[1:, :6]))
    torch.testing.assert_close(both.nodes_BKNP[1:], alone.nodes_BKNP, atol=1e-5, rtol=1e-5)
    assert both.nodes_BKNP.shape == (2, 3, 4, 16)


@pytest.mark.paper("§2.1")
def test_the_reader_sees_the_highest_score_first() -> None:
    for scores in permutations([0.3, -1.0, 2.0]):
        plan = PlanSet(torch.zeros(1, 3, 1, 1), torch.ones(1, 3, 1), torch.tensor([scores]))
        order = plan.lane_at_position[0].tolist()
        assert [scores[lane] for lane in order] == sorted(scores, reverse=True)


@pytest.mark.parametrize("lanes", [1, 2, 4, 5, 6])
def test_one_to_six_lanes_work(lanes: int) -> None:
    model = open_model(load_config("tiny", overrides=[f"lanes.count={lanes}"]))
    tokens, lengths = prompts(model)
    h, bus = roll(model, open_frontier(model, tokens, lengths), lane_tokens(model, 2, blocks=2))
    assert model.logits(h).shape == (2, lanes, 2 * BLOCK, 96)
    assert len(bus.blocks) == 2


@pytest.mark.paper("§3.4", "§8")
def test_a_prompt_read_without_the_plan_holds_nothing_of_it() -> None:
    """Then the plan acts where it stands, in Plan-KV: swapped later, it is as if never there."""
    model = open_model(load_config("tiny", overrides=["reads.plan_in_prompt=false"]))
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    other = plans.select([1, 2, 0])
    lanes = lane_tokens(model, 2, blocks=1)
    frontier = open_frontier(model, tokens, lengths, plans)
    assert not torch.allclose(frontier.h_BKD, open_frontier(model, tokens, lengths, other).h_BKD)
    frontier.plan_reads[:] = model.read_plans(other)
    swapped, _ = roll(model, frontier, lanes)
    from_the_start, _ = roll(model, open_frontier(model, tokens, lengths, other), lanes)
    torch.testing.assert_close(swapped, from_the_start)
