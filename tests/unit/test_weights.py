"""A decoder is opened whole or refused by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import pdt
from pdt.cli import app
from pdt.config import load_config
from pdt.errors import BindingMismatch, PdtError, TrunkRefused, UsageError
from pdt.model.build import config_for
from pdt.model.store import load_model
from pdt.model.weights import open_weights
from tests.support.families import make_plain, save_plain


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_plain(make_plain("llama, tied"), tmp_path_factory.mktemp("llama") / "trunk")


@pytest.fixture
def copy(llama: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(llama, tmp_path / "trunk"))


def edit_config(path: Path, **changes: Any) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"model_type": "qwen3_moe"}, "mixture of experts"),
        ({"model_type": "mixtral"}, "mixture of experts"),
        ({"model_type": "gpt2"}, "'gpt2'"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding_attention"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "'longrope'"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, "'dynamic'"),
        ({"rope_parameters": None, "rope_scaling": {"type": "mrope"}}, "'mrope'"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_attention_heads": 5}, "head"),
    ],
)
def test_what_cannot_be_split_is_refused_by_name(
    copy: Path, changes: dict[str, Any], names: str
) -> None:
    edit_config(copy, **changes)
    with pytest.raises(TrunkRefused, match=names):
        open_weights(str(copy))


def test_a_missing_a_wrong_and_an_unknown_tensor_are_all_named(copy: Path) -> None:
    tensors = load_file(copy / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    tensors["model.norm.weight"] = torch.ones(7)
    tensors["model.layers.0.self_attn.q_proj.bias"] = torch.ones(48)
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(TrunkRefused) as error:
        open_weights(str(copy))
    for words in (
        "layers.1.mlp.up_proj.weight: missing",
        "model.norm.weight: stored (7,)",
        "q_proj.bias: not a tensor of the llama family",
    ):
        assert words in str(error.value)


def test_a_truncated_file_is_refused(copy: Path) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(TrunkRefused, match="not a whole safetensors file"):
        open_weights(str(copy))


def test_pickles_are_never_opened(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(TrunkRefused, match="never unpickles"):
        open_weights(str(copy))
    with pytest.raises(TrunkRefused, match="can run code"):
        open_weights(str(copy / "pytorch_model.bin"))


def test_an_index_that_points_outside_the_directory_is_refused(copy: Path) -> None:
    index = {"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(TrunkRefused, match="beside it"):
        open_weights(str(copy))


def test_a_broken_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(TrunkRefused, match="not a whole GGUF file"):
        open_weights(str(path))


def test_a_truncated_real_gguf_is_refused(smollm2_gguf: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(smollm2_gguf.read_bytes()[:50_000_000])
    with pytest.raises(TrunkRefused, match="not a whole GGUF file"):
        open_weights(str(path))


@pytest.mark.parametrize("revision", [None, "main", "abc"])
def test_a_hub_id_needs_a_pinned_revision(revision: str | None) -> None:
    with pytest.raises(UsageError, match="40 hex digits"):
        open_weights("HuggingFaceTB/SmolLM2-135M-Instruct", revision)


def test_a_decoder_of_the_hub_is_split_at_the_commit_it_was_asked_for_at(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def snapshot(repository: str, *, revision: str, **rest: object) -> str:
        asked.append((repository, revision))
        return str(llama)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.setattr("huggingface_hub.model_info", lambda *given, **named: None)
    made = CliRunner().invoke(
        app,
        [
            "model", "init", "owner/name", "--revision", "a" * 40, "--preset", "tiny",
            "--set", "lanes.fork_layer=2", "--out", str(tmp_path / "model"),
        ],
    )  # fmt: skip
    assert made.exit_code == 0, made.exception
    assert set(asked) == {("owner/name", "a" * 40)}
    assert load_model(tmp_path / "model").config.trunk.revision == "a" * 40


def test_an_unreachable_hub_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", "http://127.0.0.1:9")
    with pytest.raises(TrunkRefused, match=r"could not be taken from the hub: .*refused"):
        open_weights("nobody/no-such-model", "0" * 40)
    assert "Retrying" not in caplog.text


@pytest.mark.parametrize("path", ["/no/such/place", "./nowhere", "../nowhere", "owner/.hidden"])
def test_a_path_that_is_nothing_is_a_usage_error(path: str) -> None:
    with pytest.raises(UsageError, match="no file, no directory and no hub id"):
        open_weights(path)


def test_another_shape_than_the_configuration_says_is_refused_side_by_side(llama: Path) -> None:
    with pytest.raises(BindingMismatch) as error:
        pdt.from_trunk(str(llama), config=load_config("tiny"))
    assert "trunk.shape.width" in str(error.value)
    assert "config 32" in str(error.value)
    assert "file 48" in str(error.value)


def test_a_trunk_of_any_shape_takes_the_presets_architecture_and_forks_at_two_thirds(
    llama: Path,
) -> None:
    model = pdt.from_trunk(str(llama), preset="tiny")
    assert model.config.trunk.shape.width == 48
    assert model.config.lanes.fork_layer == 3
    assert model.config.planner == load_config("tiny").planner


def test_an_index_that_names_an_absent_tensor_is_refused(copy: Path) -> None:
    names = {"model.embed_tokens.weight": "model.safetensors", "nobody.weight": "model.safetensors"}
    index = copy / "model.safetensors.index.json"
    for files in (names, {"model.norm.weight": 5}, {"model.norm.weight": "absent.safetensors"}):
        index.write_text(json.dumps({"weight_map": files}))
        with pytest.raises(PdtError):
            open_weights(str(copy))


def test_a_given_decoder_wins_over_the_trunk_of_a_config_file(llama: Path, tmp_path: Path) -> None:
    weights = open_weights(str(llama))
    file = tmp_path / "mine.yaml"
    file.write_text("extends: canonical\ntrunk: {source: Qwen/Other}\nlanes: {count: 2}\n")
    config = config_for(weights, "tiny", source=str(llama), file=file)
    assert (config.trunk.source, config.trunk.revision) == (str(llama), None)
    assert config.trunk.shape == weights.shape
    assert config.lanes.count == 2
