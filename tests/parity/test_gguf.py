"""A GGUF file of each family, written as llama.cpp lays it out, is the Hugging Face decoder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy
import pytest
import torch
from typer.testing import CliRunner

import pdt
from pdt.cli import app
from pdt.errors import TrunkRefused, UsageError
from pdt.model.weights import GGUFFile, HuggingFaceDirectory, expected_tensors
from tests.support.families import make_plain, save_plain

LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(name: str) -> str:
    if name in TOP:
        return TOP[name]
    _, _, layer, *middle, kind = name.split(".")
    return f"blk.{layer}.{LAYER['.'.join(middle)]}.{kind}"


def interleaved(weight: numpy.ndarray, heads: int) -> numpy.ndarray:
    """llama.cpp's converter: the two halves of a head become neighbouring rows."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, source: HuggingFaceDirectory, **extra: Any) -> Path:
    shape = source.shape
    writer = gguf.GGUFWriter(path, shape.family.value)
    writer.add_block_count(shape.layers)
    writer.add_embedding_length(shape.width)
    writer.add_head_count(shape.query_heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_width)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_layer_norm_rms_eps(shape.norm_eps)
    writer.add_context_length(shape.max_positions)
    writer.add_rope_freq_base(shape.rope.theta)
    for name, value in extra.items():
        getattr(writer, name)(value)
    for name, _ in expected_tensors(shape):
        value = source.tensor(name).numpy()
        if shape.family == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = shape.query_heads if "q_proj" in name else shape.kv_heads
            value = interleaved(value, heads)
        writer.add_tensor(gguf_name(name), value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    "variant", ["llama, tied", "qwen2, qkv bias", "qwen3, qk-norm, wide heads", "qwen3, untied"]
)
def test_a_gguf_holds_the_same_decoder_as_the_directory(variant: str, tmp_path: Path) -> None:
    directory = HuggingFaceDirectory(save_plain(make_plain(variant), tmp_path / "trunk"))
    file = GGUFFile(write_gguf(tmp_path / "trunk.gguf", directory))
    assert file.shape == directory.shape
    for name, _ in expected_tensors(file.shape):
        assert torch.equal(file.tensor(name), directory.tensor(name)), name


def test_a_gguf_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    directory = HuggingFaceDirectory(save_plain(make_plain("llama, tied"), tmp_path / "trunk"))
    assert GGUFFile(write_gguf(tmp_path / "trunk.gguf", directory)).tokenizer() is None


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"add_expert_count": 8}, "mixture of experts"),
        ({"add_sliding_window": 64}, "sliding-window"),
        ({"add_rope_scaling_type": gguf.RopeScalingType.LONGROPE}, "rope type 'longrope'"),
    ],
)
def test_a_gguf_that_cannot_be_split_is_refused_by_name(
    extra: dict[str, Any], says: str, tmp_path: Path
) -> None:
    directory = HuggingFaceDirectory(save_plain(make_plain("llama, tied"), tmp_path / "trunk"))
    with pytest.raises(TrunkRefused, match=says):
        GGUFFile(write_gguf(tmp_path / "trunk.gguf", directory, **extra))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"GGML" + data[4:],
        lambda data: data[:4] + (1).to_bytes(4, "little") + data[8:],
        lambda data: data[:8] + (2**60).to_bytes(8, "little") + data[16:],
        lambda data: data[:24] + (2**50).to_bytes(8, "little") + data[32:],
        lambda data: data[:90],
        lambda data: data[:-1],
    ],
    ids=["empty", "magic", "version", "tensors", "length", "cut header", "cut data"],
)
def test_a_damaged_gguf_is_refused_and_takes_no_memory(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    source = HuggingFaceDirectory(save_plain(make_plain("llama, tied"), tmp_path / "hf"))
    path = write_gguf(tmp_path / "model.gguf", source)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TrunkRefused, match="not a whole GGUF file"):
        GGUFFile(path)


def test_an_expanded_trunk_is_kept_and_used_only_while_its_digest_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "cache"))
    source = HuggingFaceDirectory(save_plain(make_plain("llama, tied"), tmp_path / "hf"))
    path = write_gguf(tmp_path / "model.gguf", source)
    model = pdt.from_trunk(str(path), preset="tiny")
    pdt.save_model(model, tmp_path / "model")
    first = pdt.load_model(tmp_path / "model")
    (kept,) = (tmp_path / "cache/trunks").iterdir()
    path.rename(tmp_path / "moved.gguf")
    second = pdt.load_model(tmp_path / "model")
    for (name, ours), theirs in zip(
        first.state_dict().items(), second.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    data = bytearray(kept.read_bytes())
    data[-3] ^= 1
    kept.write_bytes(data)
    with pytest.raises(UsageError, match="no file, no directory"):
        pdt.load_model(tmp_path / "model")
    assert not kept.exists()
    (tmp_path / "moved.gguf").rename(path)
    pdt.load_model(tmp_path / "model")


def test_a_model_packed_on_a_decoder_file_finds_it_under_dot_cache_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "user"))
    source = HuggingFaceDirectory(save_plain(make_plain("llama, tied"), tmp_path / "hf"))
    (tmp_path / "there" / ".cache").mkdir(parents=True)
    path = write_gguf(tmp_path / "there" / ".cache" / "decoder.gguf", source)
    other = Path(shutil.copy(path, tmp_path / "other.gguf"))
    model = pdt.from_trunk(str(path), preset="tiny")
    pdt.save_model(model, tmp_path / "model")
    command = ["model", "pack", str(tmp_path / "model"), "--out", str(tmp_path / "packed")]
    refused = CliRunner().invoke(app, [*command, "--trunk-of", str(other)])
    assert isinstance(refused.exception, UsageError)
    assert "was taken from" in str(refused.exception)
    assert not (tmp_path / "packed").exists()
    packed = CliRunner().invoke(app, [*command, "--trunk-of", str(path)])
    assert packed.exit_code == 0, packed.output
    assert str(tmp_path) not in (tmp_path / "packed" / "config.json").read_text()
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "nothing-kept"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"decoder decoder\.gguf, which is not here"):
        pdt.load_model(tmp_path / "packed")
    assert pdt.load_model(tmp_path / "packed", trunk=str(other)).trunk_identity is not None
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "nothing-kept-either"))
    monkeypatch.chdir(tmp_path / "there")
    found = pdt.load_model(tmp_path / "packed")
    for name, value in model.trunk.shared():
        assert torch.equal(dict(found.trunk.shared())[name], value)
