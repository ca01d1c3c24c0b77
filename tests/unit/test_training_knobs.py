"""Settings of training that no loss would miss: clipping and recomputation are seen to act."""

import pytest
import torch

from pdt.config import load_config
from pdt.model.build import random_model
from pdt.training.optimizer import build_optimizer, learned_parameters, take_step
from pdt.training.recompute import recompute_activations
from tests.conftest import open_model
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll


@pytest.mark.paper("Appendix A")
@pytest.mark.parametrize(("norm", "kept"), [(100.0, 0.01), (0.5, 1.0)])
def test_gradients_above_the_clip_norm_are_scaled_down_to_it(norm: float, kept: float) -> None:
    config = load_config("tiny").training
    assert config.optimizer.clip_norm == 1.0
    model = random_model(load_config("tiny"))
    optimizer = build_optimizer(model, config)
    learned = [p for _, p in learned_parameters(model) if p.requires_grad]
    for parameter in learned:
        parameter.grad = torch.full_like(parameter, 2.0)
    take_step(model, optimizer, config, 0, norm)
    moments = [optimizer.state[p]["exp_avg"] for p in learned if p in optimizer.state]
    assert moments
    for moment in moments:
        expected = (1 - optimizer.param_groups[0]["betas"][0]) * 2.0 * kept
        torch.testing.assert_close(moment, torch.full_like(moment, expected), rtol=1e-4, atol=0)


@pytest.mark.paper("Appendix A")
@pytest.mark.parametrize("wanted", [True, False])
def test_recomputed_layers_run_again_in_the_backward_pass(wanted: bool) -> None:
    model = open_model()
    recompute_activations(model, wanted)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    model.lane_layers[0].decoder.register_forward_hook(count)
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    frontier = open_frontier(model, tokens, lengths, plans)
    logits, _ = roll(model, frontier, lane_tokens(model, 2, blocks=1))
    before = calls
    logits.sum().backward()
    assert (calls > before) is wanted


@pytest.mark.paper("§3.2")
def test_a_plan_node_exists_where_its_validity_is_above_zero_and_every_lane_has_one() -> None:
    model = open_model()
    tokens, lengths = prompts(model)
    with torch.no_grad():
        prompt = model.read_prompt(tokens, lengths)
        validity = model.plan(prompt).validity_BKN
        assert validity is not None
        # The middle of the logits becomes 0: some lie just above it and some just below.
        model.planner.validity.bias.data.sub_(validity.median())
        planned = model.plan(prompt)
        assert planned.validity_BKN is not None
        assert torch.equal(planned.valid_BKN, planned.validity_BKN > 0)
        assert 0 < planned.validity_BKN[planned.valid_BKN].min() < 0.5
        model.planner.validity.bias.data.sub_(100)
        none = model.plan(prompt)
    assert not none.valid_BKN.any()
    given = none.with_a_node()
    assert none.validity_BKN is not None
    assert given.valid_BKN.sum(-1).eq(1).all()
    assert torch.equal(given.valid_BKN.int().argmax(-1), none.validity_BKN.argmax(-1))
    assert torch.equal(
        planned.with_a_node().valid_BKN.any(-1), torch.ones_like(planned.scores_BK).bool()
    )
