"""Weights in GGUF's blocks mean what the `gguf` package says, and every way of multiplying
agrees."""

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch

from pdt.config import load_config
from pdt.errors import CorruptFile, UsageError
from pdt.model import kernels
from pdt.model.blocks import BlockKind, Packed, expand_in_torch, pack, rounding_bound
from pdt.model.build import from_trunk, random_model
from pdt.model.kernels.build import library
from pdt.model.kernels.round import NativeRound, rounds_of
from pdt.model.one_lane import one_lane
from pdt.model.packing import packable, quantise, trunk_values
from pdt.model.pieces import write_tensors
from pdt.model.store import TRUNK, load_model, save_model
from pdt.model.trunk import tensors_digest
from pdt.model.weights import open_weights
from pdt.provenance import write_manifest
from pdt.training.engine import Engine
from pdt.training.ranks import Ranks
from tests.conftest import open_model
from tests.parity.test_kernels import FAMILIES, config_of
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll

KINDS = list(BlockKind)
compiled = pytest.mark.skipif(library() is None, reason="no C compiler here")


@pytest.fixture
def _best_way_again() -> Iterator[None]:
    yield
    found = library()
    assert found is not None
    found.pdt_block_way(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_mean_what_the_gguf_package_says(kind: BlockKind) -> None:
    quants = pytest.importorskip("gguf.quants")
    ggml = getattr(pytest.importorskip("gguf.constants").GGMLQuantizationType, kind.name)
    weight = torch.randn(7, 96) * torch.logspace(-6, 3, 7)[:, None]  # scales below normal halves
    rows = torch.from_numpy(quants.quantize(weight.numpy(), ggml))
    theirs = torch.from_numpy(quants.dequantize(numpy.asarray(rows), ggml))
    assert torch.equal(Packed(rows, 96).expanded(), theirs)
    assert torch.equal(expand_in_torch(Packed(rows, 96)), theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inputs", [3, 64, 257])
def test_a_packed_weight_is_within_half_a_step_of_its_floats(kind: BlockKind, inputs: int) -> None:
    weight = torch.randn(3, 5, inputs)
    packed = pack(weight, kind)
    assert packed.kind is kind
    assert packed.shape == (3, 5, inputs)
    steps = {BlockKind.Q8_0: 254, BlockKind.Q4_0: 14, BlockKind.Q4_1: 15}[kind]
    most = 2 * weight.abs().amax() / steps  # the widest block, and what half precision adds
    assert (packed.expanded() - weight).abs().max() <= most / 2 * 1.02 + 2e-3
    assert torch.equal(pack(torch.zeros(2, inputs), kind).expanded(), torch.zeros(2, inputs))


@compiled
@pytest.mark.usefixtures("_best_way_again")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("outputs", "inputs"), [(5, 3), (64, 96), (131, 257)])
def test_every_way_of_a_product_of_blocks_is_the_same_to_the_bit_and_within_its_bound(
    kind: BlockKind, outputs: int, inputs: int
) -> None:
    found = library()
    assert found is not None
    packed = pack(torch.randn(outputs, inputs), kind)
    x = torch.randn(16, inputs) * torch.logspace(-3, 3, 16)[:, None]
    exact = x.double() @ packed.expanded().double().T
    bound = rounding_bound(x, packed) + 1e-5 * (x.abs() @ packed.expanded().abs().T)
    ran = [way for way in range(3) if found.pdt_block_way(way) == way]
    assert 0 in ran
    products = []
    for way in ran:
        found.pdt_block_way(way)
        products.append(kernels.packed_linear(x[None], packed)[0])
        assert ((products[-1] - exact).abs() <= bound).all()
        for rows in range(1, 17):  # a row does not depend on its neighbours
            alone = kernels.packed_linear(x[None, :rows], packed)[0]
            assert torch.equal(alone, products[-1][:rows])
    assert all(torch.equal(product, products[0]) for product in products)
    assert found.pdt_block_way(7) == -1


@pytest.mark.parametrize("kind", KINDS)
def test_torch_multiplies_by_the_expanded_weight_where_a_gradient_is_wanted(
    kind: BlockKind,
) -> None:
    packed = pack(torch.randn(3, 8, 40), kind)
    x = torch.randn(3, 2, 40, requires_grad=True)
    y = kernels.packed_linear(x, packed)
    torch.testing.assert_close(y, x @ packed.expanded().mT)
    y.sum().backward()
    assert x.grad is not None


@compiled
@pytest.mark.paper("§3.6", "Fig. 2")
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_compiled_round_of_blocks_equals_the_layers_across_barriers(
    family: str, bits: int
) -> None:
    model = quantise(open_model(config_of(family)), bits)
    tokens, lengths = prompts(model, (9, 4, 7))
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 3, blocks=3)
    with torch.no_grad():
        reference, bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
        prompt = model.read_prompt(tokens, lengths)
        frontier = model.open_lanes(prompt, plans, suffix_tokens=lanes.shape[2])
        rounds = rounds_of(model, frontier)
        ours, other = roll(model, frontier, lanes, rounds=rounds)
    assert isinstance(rounds, NativeRound)
    # A sum in another order may round an activation to the next of 127 steps: rarely, and a little.
    difference = (ours - reference).abs()
    assert difference.median() < 2e-5
    assert difference.max() < 0.1 * reference.abs().max()
    for one, two in zip(bus.blocks, other.blocks, strict=True):
        assert one.codes_BKM.shape == two.codes_BKM.shape


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("bank", ["full", "low_rank"])
def test_a_quantised_model_is_saved_and_loaded_to_the_bit(
    tmp_path: Path, bits: int, bank: str
) -> None:
    edits = ["lanes.bank=low_rank", "lanes.rank=3"] if bank == "low_rank" else []
    model = quantise(random_model(load_config("tiny", overrides=edits)), bits)
    for name in packable(random_model(model.config)):
        assert isinstance(model.get_submodule(name).weight, Packed), name
    save_model(model, tmp_path / "packed", with_trunk=True)
    again = load_model(tmp_path / "packed")
    assert again.state_dict().keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert again.trunk_identity is not None
    assert again.trunk_identity.digest == tensors_digest(trunk_values(model))
    tokens = torch.arange(5)[None]
    assert torch.equal(again.read_prompt(tokens).h_BTD, model.read_prompt(tokens).h_BTD)


def test_blocks_of_another_size_are_refused(tmp_path: Path) -> None:
    save_model(quantise(random_model(load_config("tiny")), 4), tmp_path / "packed", with_trunk=True)
    path = tmp_path / "packed" / TRUNK
    from safetensors.torch import load_file

    tensors = load_file(path)
    tensors["embed_tokens.blocks"] = tensors["embed_tokens.blocks"][:, :-1].contiguous()
    path.unlink()
    write_tensors(path, tensors)
    (tmp_path / "packed" / "manifest.json").unlink()
    write_manifest(tmp_path / "packed", made_by="test", config={})
    with pytest.raises(CorruptFile, match="embed_tokens"):
        load_model(tmp_path / "packed")


def test_one_lane_of_a_quantised_model_is_that_lane_of_all() -> None:
    model = quantise(open_model(), 8)
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=1)
    with torch.no_grad():
        grouped = model.advance(open_frontier(model, tokens, lengths, plans), lanes, None)
        view = one_lane(model, 1)
        alone = view.open_lanes(model.read_prompt(tokens, lengths), plans.select([1]))
        states = view.advance(alone, lanes[:, 1:2], None)
    # Not to the bit: torch sums one lane and three in different orders on some CPUs.
    torch.testing.assert_close(states[:, 0], grouped[:, 1])


def test_a_quantised_model_is_not_trained() -> None:
    model = quantise(random_model(load_config("tiny")), 8)
    with pytest.raises(UsageError, match="for writing"):
        Engine(model, Ranks())


def test_blocks_of_a_gguf_file_stay_as_they_lie_there(smollm2_gguf: Path) -> None:
    """No loss against the file: the packed trunk has the digest of the expanded one."""
    edits = ["lanes.bank=low_rank", "lanes.rank=2"]
    model = from_trunk(str(smollm2_gguf), config=load_config("smollm2-135m", overrides=edits))
    assert model.trunk_identity is not None
    quantise(model, 4, open_weights(str(smollm2_gguf)))
    assert tensors_digest(trunk_values(model)) == model.trunk_identity.digest
