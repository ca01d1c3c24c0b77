"""Cheap banks: a change of low rank over one frozen projection is the bank it adds up to."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import pdt
from pdt.config import PdtConfig, edit_config, load_config
from pdt.errors import BindingMismatch, ConfigError
from pdt.model.build import random_model
from pdt.model.linear import Linear, LowRankLinear
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import LANES, load_model, save_model
from pdt.training.loop import Trainer
from tests.conftest import open_model
from tests.parity.test_one_lane import (
    test_the_packed_frontier_equals_its_lanes_run_one_after_another as check_packed_equals_serial,
)
from tests.parity.test_untrained_equals_plain import TOLERANCE, lanes_of
from tests.parity.test_weight_gradients import check_gathered_equals_block_by_block
from tests.spec import test_lanes as lanes
from tests.support.families import VARIANTS, make_plain, save_plain
from tests.support.mechanisms import mechanisms_of
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll
from tests.support.training_samples import corpus

RANK = ["lanes.bank=low_rank", "lanes.rank=3"]


def low_rank(*overrides: str) -> PdtConfig:
    return load_config("tiny", overrides=[*RANK, *overrides])


def as_full(model: ParallelDecoder) -> ParallelDecoder:
    """The same model with whole banks, each summed up in float64."""
    full = open_model(load_config("tiny"))
    state = {n: v for n, v in model.state_dict().items() if n in full.state_dict()}
    for name, module in model.named_modules():
        if isinstance(module, LowRankLinear):
            change = module.widen.double() @ module.narrow.double()
            assert isinstance(module.base.weight, torch.Tensor)
            state[f"{name}.weight"] = (module.base.weight.double() + change).float()
    full.load_state_dict(state)
    return full


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_untrained_low_rank_model_equals_the_plain_transformers_model(
    variant: str, tmp_path: Path
) -> None:
    plain = make_plain(variant)
    source = str(save_plain(plain, tmp_path / "trunk"))
    config = edit_config(pdt.from_trunk(source, preset="tiny").config, RANK, where="test")
    model = pdt.from_trunk(source, config=config)
    tokens = torch.randint(101, (2, 37))
    with torch.no_grad():
        expected = plain(tokens).logits[:, 19:]
    for lane in lanes_of(model, tokens, prompt=20).unbind(1):
        assert (lane - expected).abs().max() <= TOLERANCE


def test_a_low_rank_bank_is_the_whole_bank_it_adds_up_to() -> None:
    model = open_model(low_rank())
    full = as_full(model)
    tokens, lengths = prompts(model)
    plans, lanes = plan_of(model, tokens, lengths), lane_tokens(model, 2, blocks=3)
    with torch.no_grad():
        ours, bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
        theirs, other = roll(full, open_frontier(full, tokens, lengths, plans), lanes)
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-5)
    for mine, yours in zip(bus.blocks, other.blocks, strict=True):
        assert torch.equal(mine.codes_BKM, yours.codes_BKM)


@pytest.mark.parametrize("claim", mechanisms_of(lanes))
def test_lanes_of_low_rank_keep_apart_as_whole_ones_do(
    claim: Callable[[ParallelDecoder], None],
) -> None:
    claim(open_model(low_rank()))


def test_packed_lanes_of_low_rank_equal_lanes_one_after_another() -> None:
    check_packed_equals_serial(open_model(low_rank()))


def test_gradients_of_a_change_are_gathered_as_those_of_a_bank() -> None:
    check_gathered_equals_block_by_block(open_model(low_rank()), 20)


def test_a_lane_that_starts_does_not_change_anything_and_all_start_alike() -> None:
    model = random_model(low_rank())
    changes = [m for m in model.modules() if isinstance(m, LowRankLinear)]
    assert len(changes) == 7 * model.config.upper_layers
    for change in changes:
        assert not change.widen.any()
        assert torch.equal(change.narrow[0], change.narrow[2])
        assert isinstance(change.base, Linear)


def test_a_saved_lane_does_not_hold_what_it_changes(tmp_path: Path) -> None:
    model = open_model(low_rank())
    save_model(model, tmp_path / "model", with_trunk=True)
    names = set(load_file(tmp_path / "model" / LANES))
    assert {name.rsplit(".", 1)[1] for name in names if "_proj" in name} == {"narrow", "widen"}
    loaded = load_model(tmp_path / "model").eval()
    tokens, lengths = prompts(model)
    lanes = lane_tokens(model, 2, blocks=1)
    with torch.no_grad():
        ours, _ = roll(model, open_frontier(model, tokens, lengths), lanes)
        theirs, _ = roll(loaded, open_frontier(loaded, tokens, lengths), lanes)
    assert torch.equal(ours, theirs)
    with pytest.raises(BindingMismatch, match=r"lanes\.bank"):
        load_model(tmp_path / "model", expect=load_config("tiny"))


@pytest.mark.parametrize(
    "overrides",
    [["lanes.bank=low_rank"], ["lanes.rank=4"], ["lanes.bank=low_rank", "lanes.rank=0"]],
)
def test_a_rank_belongs_to_a_low_rank_bank_and_to_no_other(overrides: list[str]) -> None:
    with pytest.raises(ConfigError, match="rank"):
        load_config("tiny", overrides=overrides)


def test_training_moves_the_changes_and_not_what_they_stand_on(tmp_path: Path) -> None:
    shards, given = corpus(tmp_path, documents=2)
    alone = "training.stages=[{first_step: 0, plan: oracle, trains: [lanes]}]"
    config = edit_config(given, [*RANK, alone], where="test")
    model = open_model(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Trainer(model, shards, tmp_path / "run").train(until=2)
    moved = {n for n, v in model.state_dict().items() if not torch.equal(v, before[n])}
    assert not any(name.startswith("trunk.") for name in moved)
    assert any(name.endswith(".widen") for name in moved)
    assert any(name.endswith(".narrow") for name in moved)
    resumed = Trainer.resume(shards, tmp_path / "run", config).model
    for name, value in resumed.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name
