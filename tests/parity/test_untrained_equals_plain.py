"""Untrained, the extension is the pretrained decoder, lane by lane."""

from pathlib import Path

import pytest
import torch
import transformers

import pdt
from pdt.config import load_config
from pdt.model.pdt import ParallelDecoder
from tests.support.families import VARIANTS, make_plain, save_plain
from tests.support.rollouts import plan_of

TOLERANCE = 1e-4


def lanes_of(model: ParallelDecoder, tokens_BT: torch.Tensor, prompt: int) -> torch.Tensor:
    """Logits of every lane over the same continuation, with a barrier after each block."""
    B = len(tokens_BT)
    lengths = torch.full((B,), prompt)
    with torch.no_grad():
        read = model.read_prompt(tokens_BT[:, :prompt])
        frontier = model.open_lanes(read, plan_of(model, tokens_BT[:, :prompt], lengths))
        states, bus = [frontier.h_BKD[:, :, None]], model.empty_bus()
        everyone = torch.ones(B, model.config.lanes.count, dtype=torch.bool)
        after = tokens_BT[:, None, prompt:].expand(-1, model.config.lanes.count, -1)
        for block, tokens in enumerate(after.split(model.config.lanes.block_tokens, dim=2)):
            states.append(model.advance(frontier, tokens, model.read_notes(bus, block)))
            if tokens.shape[2] == model.config.lanes.block_tokens:
                note = model.write_notes(states[-1][:, :, -1], everyone)
                bus = bus.commit(block, note)
        return model.logits(torch.cat(states, dim=2))


@pytest.mark.paper("§3.5", "§3.3")
@pytest.mark.parametrize("variant", VARIANTS)
def test_untrained_pdt_equals_the_plain_transformers_model(variant: str, tmp_path: Path) -> None:
    plain = make_plain(variant)
    model = pdt.from_trunk(str(save_plain(plain, tmp_path / "trunk")), preset="tiny")
    tokens = torch.randint(101, (2, 37))
    with torch.no_grad():
        expected = plain(tokens).logits[:, 19:]
    for lane in lanes_of(model, tokens, prompt=20).unbind(1):
        assert (lane - expected).abs().max() <= TOLERANCE
        assert torch.equal(lane.argmax(-1), expected.argmax(-1))


def test_shards_and_a_single_file_are_the_same_trunk(tmp_path: Path) -> None:
    plain = make_plain("qwen3, untied")
    single = pdt.from_trunk(str(save_plain(plain, tmp_path / "single")), preset="tiny")
    sharded = pdt.from_trunk(
        str(save_plain(plain, tmp_path / "sharded", shard="40KB")), preset="tiny"
    )
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 2
    assert single.trunk_identity is not None and sharded.trunk_identity is not None
    assert single.trunk_identity.digest == sharded.trunk_identity.digest
    for (name, ours), theirs in zip(
        single.state_dict().items(), sharded.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs), name


def test_half_precision_files_are_read_as_stored(tmp_path: Path) -> None:
    path = save_plain(make_plain("llama, tied").to(torch.bfloat16), tmp_path / "trunk")
    plain = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    model = pdt.from_trunk(str(path), preset="tiny")
    tokens = torch.randint(101, (1, 24))
    with torch.no_grad():
        expected = plain(tokens).logits[:, 11:]
    for lane in lanes_of(model, tokens, prompt=12).unbind(1):
        assert (lane - expected).abs().max() <= TOLERANCE


@pytest.mark.paper("§3.5")
def test_real_smollm2_split_into_three_lanes_equals_the_plain_model(smollm2_gguf: Path) -> None:
    """An independent reader and an independent model: `transformers` on the same GGUF."""
    plain = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32
    ).eval()
    model = pdt.from_trunk(str(smollm2_gguf), config=load_config("smollm2-135m"))
    tokens = torch.randint(1000, 40000, (1, 80))
    with torch.no_grad():
        expected = plain(tokens).logits[:, 39:]
    for lane in lanes_of(model, tokens, prompt=40).unbind(1):
        assert (lane - expected).abs().max() <= 1e-3  # logits of up to 30 over 30 layers
        assert (lane - expected).abs().mean() <= TOLERANCE
        assert torch.equal(lane.argmax(-1), expected.argmax(-1))
