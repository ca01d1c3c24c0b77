"""Nano's trunk from llama2.c's file: read, given another vocabulary, adapted, split."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.model.build import from_trunk
from pdt.records.batch import RecordShards
from pdt.study.adapt import Adaptation, PlainDecoder
from pdt.study.embedding import re_embed
from pdt.study.stories import fetch_stories, read_stories
from pdt.study.trunk import make_trunk
from pdt.terms import TrunkFamily
from pdt.tokenizer import load_tokenizer
from tests.support.training_samples import corpus

PIECES = [b"<unk>", b"<s>", b"</s>", b" ", b"t", b"h", b"e", b"th", b"the", b" the"]
Records = tuple[RecordShards, PdtConfig]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return corpus(tmp_path_factory.mktemp("corpus"))


def write_stories(path: Path, config: PdtConfig) -> Path:
    """A file in llama2.c's layout with the shape of the config and a vocabulary of ten pieces."""
    shape = config.trunk.shape
    D, L, H, V, S = shape.width, shape.layers, shape.feed_forward, len(PIECES), 8
    sizes = [V * D, L * D, *4 * [L * D * D], L * D, *3 * [L * D * H], D, S * shape.head_width]
    values = np.random.default_rng(0).standard_normal(sum(sizes)).astype("<f4") * 0.05
    raw = struct.pack("7i", D, H, L, shape.query_heads, shape.query_heads, V, S) + values.tobytes()
    raw += struct.pack("i", 5)
    for number, piece in enumerate(PIECES):
        raw += struct.pack("fi", float(number), len(piece)) + piece
    path.write_bytes(raw)
    return path


@pytest.fixture
def config(records: Records) -> PdtConfig:
    """llama2.c's decoders have as many key heads as query heads."""
    shape = records[1].trunk.shape
    plain = shape.model_copy(update={"kv_heads": shape.query_heads, "family": TrunkFamily.LLAMA})
    trunk = records[1].trunk.model_copy(
        update={"shape": plain.model_copy(update={"qk_norm": False})}
    )
    return records[1].model_copy(update={"trunk": trunk})


def test_every_tensor_of_the_file_has_the_name_and_shape_of_the_decoder(
    config: PdtConfig, tmp_path: Path
) -> None:
    stories = read_stories(write_stories(tmp_path / "llama2.data", config))
    ours = PlainDecoder(config.trunk.shape).state_dict()
    assert stories.tensors.keys() == ours.keys()
    for name, tensor in stories.tensors.items():
        assert tensor.shape[1:] == ours[name].shape[1:]
    assert stories.pieces == PIECES and stories.scores == [float(n) for n in range(10)]


def test_a_word_starts_as_the_mean_of_its_old_pieces(config: PdtConfig, tmp_path: Path) -> None:
    stories = read_stories(write_stories(tmp_path / "llama2.data", config))
    student = load_tokenizer(config.records.tokenizer)
    old = stories.tensors["embed_tokens.weight"]
    new = re_embed(stories, student, config.trunk.shape.vocabulary)
    (the,) = student.encode(" the").ids
    torch.testing.assert_close(new[the], old[PIECES.index(b" the")])
    torch.testing.assert_close(new[student.eos_id], old[PIECES.index(b"</s>")])
    torch.testing.assert_close(new[-1], old.mean(0))


@pytest.mark.slow
def test_a_killed_adaptation_goes_on_to_the_same_trunk(
    records: Records, config: PdtConfig, tmp_path: Path
) -> None:
    stories = write_stories(tmp_path / "llama2.data", config)
    how = Adaptation(steps=4, batch_documents=1, save_steps=2)
    make_trunk(stories, records[0], config, how, tmp_path / "whole")

    def kill(step: int, numbers: dict[str, float]) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_trunk(stories, records[0], config, how, tmp_path / "killed", kill)
    assert not (tmp_path / "killed/model.safetensors").exists()
    make_trunk(stories, records[0], config, how, tmp_path / "killed")
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_state_of_another_adaptation_and_too_small_a_corpus_are_refused(
    records: Records, config: PdtConfig, tmp_path: Path
) -> None:
    stories = write_stories(tmp_path / "llama2.data", config)
    how = Adaptation(steps=2, batch_documents=1, save_steps=2)
    make_trunk(stories, records[0], config, how, tmp_path / "trunk")
    fewer = Adaptation(steps=1, batch_documents=1, save_steps=2)
    with pytest.raises(BindingMismatch, match=r"adaptation\.steps +state 2 +asked for 1"):
        make_trunk(stories, records[0], config, fewer, tmp_path / "trunk")
    many = Adaptation(steps=1, batch_documents=len(records[0]) + 1)
    with pytest.raises(UsageError, match="Write a larger corpus"):
        make_trunk(stories, records[0], config, many, tmp_path / "other")


def test_the_adapted_trunk_can_be_split(
    records: Records, config: PdtConfig, tmp_path: Path
) -> None:
    stories = write_stories(tmp_path / "llama2.data", config)
    how = Adaptation(steps=1, batch_documents=1)
    make_trunk(stories, records[0], config, how, tmp_path / "trunk")
    model = from_trunk(str(tmp_path / "trunk"), config=config)
    lanes = model.lane_layers[0].decoder.self_attn.q_proj.weight
    assert isinstance(lanes, torch.Tensor) and torch.equal(lanes[0], lanes[1])


def test_another_file_under_its_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "llama2.data").write_bytes(b"not stories")
    with pytest.raises(CorruptFile, match="not llama2"):
        fetch_stories(tmp_path / "llama2.data")
