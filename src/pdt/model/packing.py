"""A model whose large weights lie in blocks: made from one of floats, or laid out for what is
stored.

Packed are the weights that a round reads: the trunk's projections, embedding and head, whole banks,
and the query and output maps of Plan-KV and SNC. Changes of low rank are rounded to half precision,
as the compiled round reads them. Norms, biases, the planner and what runs at barriers stay floats.

Not in the paper, whose weights are whole (§3.3).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import torch
from torch import Tensor, nn

from pdt.model.blocks import BY_BITS, Packed, kind_of, pack
from pdt.model.build import hf_name
from pdt.model.layer import DecoderLayer, stand_on
from pdt.model.linear import Linear, LowRankLinear, PackedEmbedding, PackedLinear
from pdt.model.pdt import ParallelDecoder
from pdt.model.weights import PretrainedWeights

CHANGES = torch.float16
"""How exactly a change of low rank stands beside a weight of blocks."""
BLOCKS = ".blocks"
"""How the name of a stored weight in blocks ends, where one of floats ends in `.weight`."""


def quantise(
    model: ParallelDecoder, bits: int, source: PretrainedWeights | None = None
) -> ParallelDecoder:
    """Pack the weights of a model in place. What `source`, its trunk's file, holds in blocks is
    taken as it lies there, whatever `bits` says: nothing would be gained by packing it again."""
    kind, fork = BY_BITS[bits], model.config.lanes.fork_layer

    def packed(name: str, weight: Tensor) -> Packed:
        if source is not None and name.startswith("trunk."):
            stored = source.blocks(hf_name(name.removeprefix("trunk.") + ".weight", fork))
            if stored is not None:
                return stored
        return pack(weight, kind)

    for name in packable(model):
        module = model.get_submodule(name)
        assert isinstance(module, Linear | nn.Linear | nn.Embedding)
        _replace(model, name, packed(name, module.weight.data))
    _stand_again(model)
    for change in changes(model.lanes):
        change.data = change.data.to(CHANGES).float()
    return model


def lay_out_blocks(model: ParallelDecoder, stored: Mapping[str, tuple[int, ...]]) -> None:
    """Make the places for stored weights in blocks; `check_sizes` has held them against the
    model."""
    for name, shape in stored.items():
        if name.endswith(BLOCKS):
            owner = name.removesuffix(BLOCKS)
            module = model.get_submodule(owner)
            assert isinstance(module.weight, Tensor)
            blocks = torch.empty(shape, dtype=torch.uint8)
            _replace(model, owner, Packed(blocks, module.weight.shape[-1]))
    _stand_again(model)


def packable(model: ParallelDecoder) -> list[str]:
    """The modules whose weights a round reads and blocks may hold, by name."""
    return [name for name, module in model.named_modules() if _is_read(name, module)]


def changes(part: nn.Module) -> Iterator[nn.Parameter]:
    """Both halves of every change of low rank in a part of a model."""
    for module in part.modules():
        if isinstance(module, LowRankLinear):
            yield module.narrow
            yield module.widen


def is_packed(model: nn.Module) -> bool:
    return any(isinstance(module, PackedLinear) for module in model.modules())


def of_floats(
    shapes: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """What is stored, blocks under the name and the shape of the weight they stand for."""

    def one(name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        if not name.endswith(BLOCKS):
            return name, shape
        weight = name.removesuffix(BLOCKS) + ".weight"
        whole = expected.get(weight, ())
        fits = whole and whole[:-1] == shape[:-1] and kind_of(shape[-1], whole[-1]) is not None
        return weight, whole if fits else shape

    return dict(one(name, shape) for name, shape in shapes.items())


def values_of(
    tensors: Iterable[tuple[str, Tensor]], inputs: Callable[[str], int]
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor by the name of its weight, sorted, blocks expanded one at a time: what a digest
    takes. It does not see how the values were stored."""

    def order(item: tuple[str, Tensor]) -> str:
        name = item[0]
        return name.removesuffix(BLOCKS) + ".weight" if name.endswith(BLOCKS) else name

    for name, value in sorted(tensors, key=order):
        if name.endswith(BLOCKS):
            owner = name.removesuffix(BLOCKS)
            yield owner + ".weight", Packed(value, inputs(owner)).expanded()
        else:
            yield name, value


def trunk_values(
    model: ParallelDecoder, tensors: Mapping[str, Tensor] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """The values of a model's trunk, or of tensors stored for it, in the order of its digest."""
    found = model.trunk.state_dict() if tensors is None else tensors

    def inputs(owner: str) -> int:
        module = model.trunk.get_submodule(owner)
        assert isinstance(module, PackedLinear)
        return module.inputs

    return values_of(found.items(), inputs)


def _is_read(name: str, module: nn.Module) -> bool:
    if isinstance(module, Linear) or name == "trunk.embed_tokens":
        return name.startswith("trunk.") or ".decoder." in name
    return isinstance(module, nn.Linear) and name.endswith(
        tuple(f".{read}.{half}_proj" for read in ("plan_kv", "snc") for half in "qo")
    )


def _replace(model: ParallelDecoder, name: str, packed: Packed) -> None:
    parent, _, own = name.rpartition(".")
    old = model.get_submodule(name)
    bias = cast(nn.Parameter | None, getattr(old, "bias", None))
    kind = PackedEmbedding if own == "embed_tokens" else PackedLinear
    setattr(model.get_submodule(parent), own, kind(packed.blocks, packed.inputs, bias))


def _stand_again(model: ParallelDecoder) -> None:
    """Changes of low rank stand on the projections that are there now."""
    for layer, base in zip(model.lane_layers, model.trunk.upper, strict=False):
        stand_on(layer.decoder, cast(DecoderLayer, base))
