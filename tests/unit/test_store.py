"""A saved model is bound to what it is; anything else is refused, and nothing is half-written."""

import json
from pathlib import Path

import pytest
import torch

import pdt
from pdt.config import TokenizerConfig, load_config
from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.model.build import random_model
from pdt.provenance import MANIFEST, sha256_file
from pdt.tokenizer import load_tokenizer
from pdt.training.engine import Engine
from pdt.training.ranks import Ranks
from tests.conftest import open_model
from tests.support.families import make_plain, save_plain
from tests.support.record_samples import train_tokenizer
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    pdt.save_model(open_model(), tmp_path / "model", with_trunk=True)
    return tmp_path / "model"


@pytest.mark.paper("§6")
def test_a_loaded_model_computes_what_the_saved_one_did(saved: Path) -> None:
    model, again = open_model(), pdt.load_model(saved).eval()
    for (name, ours), theirs in zip(
        model.state_dict().items(), again.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    tokens, lengths = prompts(model)
    lanes = lane_tokens(model, 2, blocks=2)
    plans = plan_of(model, tokens, lengths)
    ours, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    theirs, _ = roll(again, open_frontier(again, tokens, lengths, plans), lanes)
    assert torch.equal(ours, theirs)


def test_a_model_saved_without_its_trunk_finds_it_again(tmp_path: Path) -> None:
    trunk = save_plain(make_plain("llama, tied"), tmp_path / "trunk")
    model = pdt.from_trunk(str(trunk), preset="tiny")
    pdt.save_model(model, tmp_path / "model")
    assert not (tmp_path / "model/trunk.safetensors").exists()
    again = pdt.load_model(tmp_path / "model")
    assert torch.equal(again.trunk.embed_tokens.weight, model.trunk.embed_tokens.weight)
    moved = trunk.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="no file, no directory"):
        pdt.load_model(tmp_path / "model")
    pdt.load_model(tmp_path / "model", trunk=str(moved))


@pytest.mark.paper("§4.3")
def test_a_tokenizer_has_one_identity_in_its_file_its_trunk_and_every_saved_model(
    tmp_path: Path,
) -> None:
    trunk = save_plain(make_plain("llama, tied"), tmp_path / "trunk")
    file = train_tokenizer(trunk / "tokenizer.json")
    # Another spelling of the same JSON: what the library would write is not what is on disk.
    file.write_text(json.dumps(json.loads(file.read_text()), indent=3) + "\n")
    model = pdt.from_trunk(str(trunk), preset="tiny")
    assert model.tokenizer is not None
    pdt.save_model(model, tmp_path / "first")
    pdt.save_model(pdt.load_model(tmp_path / "first"), tmp_path / "second")
    again = pdt.load_model(tmp_path / "second").tokenizer
    named = TokenizerConfig(name="t", file=str(file), eos=model.tokenizer.eos)
    assert again is not None
    assert again.sha256 == model.tokenizer.sha256 == load_tokenizer(named).sha256
    assert again.sha256 == sha256_file(file) == sha256_file(tmp_path / "second/tokenizer.json")


def test_another_trunk_is_refused_by_its_digest(tmp_path: Path) -> None:
    plain = make_plain("llama, tied")
    trunk = save_plain(plain, tmp_path / "trunk")
    pdt.save_model(pdt.from_trunk(str(trunk), preset="tiny"), tmp_path / "model")
    plain.model.embed_tokens.weight.data[3, 3] += 0.5
    other = save_plain(plain, tmp_path / "other")
    with pytest.raises(BindingMismatch) as error:
        pdt.load_model(tmp_path / "model", trunk=str(other))
    assert "stands on another trunk" in str(error.value)
    assert "digest" in str(error.value)


@pytest.mark.paper("§6")
@pytest.mark.parametrize(
    ("override", "saved_says", "run_says"),
    [
        ("notes.condition=self_only", "saved bus", "run self_only"),
        ("lanes.fork_layer=3", "saved 2", "run 3"),
        ("lanes.count=2", "saved 3", "run 2"),
    ],
)
def test_another_condition_fork_or_lane_count_is_refused_side_by_side(
    saved: Path, override: str, saved_says: str, run_says: str
) -> None:
    with pytest.raises(BindingMismatch) as error:
        pdt.load_model(saved, expect=load_config("tiny", overrides=[override]))
    message = str(error.value)
    assert override.split("=")[0] in message
    assert saved_says in message
    assert run_says in message
    pdt.load_model(saved, expect=load_config("tiny"))


@pytest.mark.parametrize("file", ["lanes.safetensors", "coordination.safetensors", "config.json"])
def test_a_tampered_file_is_refused(saved: Path, file: str) -> None:
    data = bytearray((saved / file).read_bytes())
    data[-2] ^= 1
    (saved / file).write_bytes(data)
    with pytest.raises(CorruptFile, match="digest"):
        pdt.load_model(saved)


@pytest.mark.parametrize("file", ["lanes.safetensors", "trunk.safetensors", "config.json"])
def test_a_truncated_file_is_refused(saved: Path, file: str) -> None:
    data = (saved / file).read_bytes()
    (saved / file).write_bytes(data[:-5])
    with pytest.raises(CorruptFile, match="truncated"):
        pdt.load_model(saved)


@pytest.mark.parametrize("file", ["lanes.safetensors", MANIFEST])
def test_a_missing_file_is_refused(saved: Path, file: str) -> None:
    (saved / file).unlink()
    with pytest.raises(CorruptFile, match="missing"):
        pdt.load_model(saved)


def test_an_unknown_format_is_refused(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    config["format"] = 99
    (saved / "config.json").write_text(json.dumps(config))
    with pytest.raises(CorruptFile):
        pdt.load_model(saved)


def test_a_directory_that_is_no_model_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"is not a pdt model.*\n.*of the package: digest, nano, nano-self"
    ):
        pdt.load_model(tmp_path)


def test_saving_never_writes_over_and_leaves_nothing_behind_when_it_fails(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="not empty"):
        pdt.save_model(open_model(), saved)

    def full_disk(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("pdt.model.store.write_tensors", full_disk)
    with pytest.raises(OSError, match="No space"):
        pdt.save_model(open_model(), tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


def test_half_precision_on_disk_is_its_own_trunk_and_loads(tmp_path: Path) -> None:
    model = open_model()
    pdt.save_model(model, tmp_path / "half", with_trunk=True, dtype=torch.float16)
    again = pdt.load_model(tmp_path / "half")
    assert again.trunk_identity != model.trunk_identity
    for ours, theirs in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(ours.half().float(), theirs)


def test_the_same_seed_is_the_same_model_and_the_global_random_state_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two = (random_model(load_config("tiny"), seed=3) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    other = random_model(load_config("tiny"), seed=4)
    assert not torch.equal(one.trunk.embed_tokens.weight, other.trunk.embed_tokens.weight)


def test_random_lanes_start_equal_and_every_parameter_is_set() -> None:
    model = random_model(load_config("tiny"))
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter).all(), name
        if name.startswith("lanes.") and ".decoder." in name:
            assert torch.equal(parameter[0], parameter[1])
            assert torch.equal(parameter[0], parameter[2])


def test_a_loaded_model_lies_in_its_files_and_never_writes_into_them(saved: Path) -> None:
    lanes = saved / "lanes.safetensors"
    before = sha256_file(lanes)
    model = pdt.load_model(saved)
    name = "lanes.0.decoder.mlp.up_proj.weight"
    weight = model.get_parameter(name)
    assert weight.data_ptr() % 32 == 0  # what the kernels read at once
    if (maps := Path("/proc/self/maps")).exists():
        ranges = [
            range(*(int(end, 16) for end in line.split()[0].split("-")))
            for line in maps.read_text().splitlines()
            if line.endswith(str(lanes))
        ]
        assert any(weight.data_ptr() in part for part in ranges)
    with torch.no_grad():
        weight.add_(1)
    assert sha256_file(lanes) == before
    assert torch.equal(weight, pdt.load_model(saved).get_parameter(name) + 1)


def test_training_takes_mapped_weights_into_memory_of_its_own() -> None:
    """They lie in a file as it packs them; on some CPUs a product's last bit depends on that."""
    model = pdt.load_model("nano")
    values = {name: value.clone() for name, value in model.state_dict().items()}
    mapped = {name: value.data_ptr() for name, value in model.state_dict().items()}
    Engine(model, Ranks())
    for name, value in model.state_dict().items():
        assert value.data_ptr() != mapped[name], f"{name} lies in its file still"
        assert value.data_ptr() % 64 == 0, name
        assert torch.equal(value, values[name])
