"""One stack for all lanes: what private stacks start from, and what they are compared with."""

from pathlib import Path

import pytest
import torch

from pdt.config import PdtConfig, edit_config, load_config
from pdt.errors import BindingMismatch
from pdt.model.build import give_notes, part_lanes
from pdt.model.census import take_census, traffic
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import load_model, save_model
from pdt.terms import NotesCondition
from pdt.training.loop import Trainer
from tests.conftest import open_model
from tests.parity.test_one_lane import (
    test_the_packed_frontier_equals_its_lanes_run_one_after_another as check_packed_equals_serial,
)
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll
from tests.support.training_samples import corpus

BANKS = {
    "full": ["lanes.shared=true"],
    "low_rank": ["lanes.shared=true", "lanes.bank=low_rank", "lanes.rank=3"],
}
UNMARKED = "reads.plan_in_prompt=false"


def shared(bank: str, *overrides: str) -> PdtConfig:
    return load_config("tiny", overrides=[*BANKS[bank], *overrides])


def rolled(*models: ParallelDecoder) -> list[torch.Tensor]:
    """What each writes of the same prompts under the same plans."""
    tokens, lengths = prompts(models[0])
    plans, lanes = plan_of(models[0], tokens, lengths), lane_tokens(models[0], 2, blocks=3)
    with torch.no_grad():
        return [roll(m, open_frontier(m, tokens, lengths, plans), lanes)[0] for m in models]


@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("marks", [UNMARKED, "reads.plan_in_prompt=true"])
def test_lanes_that_part_write_what_they_wrote_together(bank: str, marks: str) -> None:
    together = open_model(shared(bank, marks))
    apart = part_lanes(together).eval()
    torch.testing.assert_close(*rolled(apart, together), atol=2e-5, rtol=1e-5)
    banks = [p for layer in apart.lane_layers for p in layer.decoder.parameters()]
    assert all(len(bank) == apart.config.lanes.count for bank in banks)
    with pytest.raises(BindingMismatch, match="own already"):
        part_lanes(apart)


def test_bus_and_control_go_on_from_one_model_that_has_read_no_note() -> None:
    """Trained without notes it writes the same under either; a trained one keeps its own."""
    silent = open_model(shared("full", UNMARKED, "notes.condition=no_dynamic"))
    snc = [p for layer in silent.lane_layers for p in layer.snc.o_proj.parameters()]
    for parameter in snc:  # as they start: a read of any note adds nothing
        parameter.data.zero_()
    given = [give_notes(silent, c).eval() for c in (NotesCondition.BUS, NotesCondition.SELF_ONLY)]
    assert [m.config.notes.condition.value for m in given] == ["bus", "self_only"]
    texts = rolled(silent, *given)
    assert all(torch.equal(texts[0], text) for text in texts[1:])
    with pytest.raises(BindingMismatch, match="read notes already"):
        give_notes(given[0], NotesCondition.SELF_ONLY)


@pytest.mark.parametrize("bank", BANKS)
def test_a_shared_stack_reads_the_prompt_once_and_its_plans_in_every_lane(bank: str) -> None:
    model = open_model(shared(bank, UNMARKED))
    tokens, lengths = prompts(model)
    frontier = open_frontier(model, tokens, lengths, plan_of(model, tokens, lengths))
    assert [memory.past[0].k.shape[1] for memory in frontier.upper] == [1] * len(frontier.upper)
    h_BKD = frontier.h_BKD
    assert h_BKD.shape[1] == model.config.lanes.count
    assert not torch.equal(h_BKD[:, 0], h_BKD[:, 1])  # their plans differ


@pytest.mark.parametrize("bank", BANKS)
def test_packed_lanes_of_one_stack_equal_lanes_one_after_another(bank: str) -> None:
    check_packed_equals_serial(open_model(shared(bank, UNMARKED)))


def test_the_census_counts_one_stack_that_is_read_once_a_round() -> None:
    config, own = shared("full"), load_config("tiny")
    lanes = config.lanes.count
    census = take_census(config)
    assert census.physical_total * lanes == take_census(own).physical_total
    bytes_read = traffic(config, census)
    assert bytes_read.serial_rounds == lanes * bytes_read.packed_round


@pytest.mark.parametrize("bank", BANKS)
def test_a_shared_stack_trains_saves_and_goes_on_parted(bank: str, tmp_path: Path) -> None:
    shards, given = corpus(tmp_path, documents=2)
    model = open_model(edit_config(given, [*BANKS[bank], UNMARKED], where="test"))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Trainer(model, shards, tmp_path / "run").train(until=1)
    moved = [n for n, v in model.state_dict().items() if not torch.equal(v, before[n])]
    assert any(".decoder." in name for name in moved)
    save_model(model, tmp_path / "model", with_trunk=True)
    parted = part_lanes(load_model(tmp_path / "model"))
    Trainer(parted, shards, tmp_path / "parted").train(until=1)
    bank_K = next(parted.lane_layers[0].decoder.input_layernorm.parameters())
    assert not torch.equal(bank_K[0], bank_K[1])
