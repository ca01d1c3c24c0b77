"""Weights as GGUF stores them, in blocks of 32 numbers: Q8_0, Q4_0, Q4_1.

A block is a scale in half precision, for Q4_1 also a least value, and 32 whole numbers of eight or
four bits. `Packed` holds them as they lie in a file. Its compiled product (`kernels/blocks.h`)
rounds each block of 32 activations to 127 steps of its largest; torch multiplies by the expanded
numbers instead.

Not in the paper, whose weights are whole (§3.3).
"""

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

BLOCK = 32


class BlockKind(IntEnum):
    """How a block stores its numbers; the values are those of `kind` in blocks.h."""

    Q8_0 = 1
    Q4_0 = 2
    Q4_1 = 3

    @property
    def bytes(self) -> int:
        return {BlockKind.Q8_0: 34, BlockKind.Q4_0: 18, BlockKind.Q4_1: 20}[self]


GGML_KINDS = {2: BlockKind.Q4_0, 3: BlockKind.Q4_1, 8: BlockKind.Q8_0}
"""By ggml's number of the type."""
BY_BITS = {8: BlockKind.Q8_0, 4: BlockKind.Q4_1}
"""What floats are packed into; Q4_0 comes from files alone."""


@dataclass(frozen=True)
class Packed:
    """A weight [..., out, in] of whole blocks; the last of a row is filled up with zeros."""

    blocks: Tensor
    """[..., out, bytes of a row], uint8."""
    inputs: int

    @property
    def kind(self) -> BlockKind:
        kind = kind_of(self.blocks.shape[-1], self.inputs)
        assert kind is not None
        return kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weight that it stands for."""
        return (*self.blocks.shape[:-1], self.inputs)

    def expanded(self) -> Tensor:
        """Every number in fp32, exactly as the file means it."""
        from pdt.model.kernels import expand_blocks

        return expand_blocks(self)


def kind_of(row_bytes: int, inputs: int) -> BlockKind | None:
    """Which kind has rows of so many bytes: the three never agree."""
    blocks = -(-inputs // BLOCK)
    return next((kind for kind in BlockKind if kind.bytes * blocks == row_bytes), None)


def pack(weight: Tensor, kind: BlockKind) -> Packed:
    """The nearest blocks to a weight of floats, scales and least values rounded to half
    precision."""
    inputs = weight.shape[-1]
    padded = torch.nn.functional.pad(weight.detach().float(), (0, -inputs % BLOCK))
    whole = padded.unflatten(-1, (-1, BLOCK))  # [..., out, blocks, 32]
    if kind is BlockKind.Q4_1:
        least = whole.amin(-1, keepdim=True).half()
        scale = ((whole.amax(-1, keepdim=True) - least.float()) / 15).half()
        numbers = _steps(whole - least.float(), scale, 0, 15)
        heads = [scale, least]
    else:
        most = 127 if kind is BlockKind.Q8_0 else 7
        scale = (whole.abs().amax(-1, keepdim=True) / most).half()
        numbers = _steps(whole, scale, -most, most)
        heads = [scale]
    if kind is BlockKind.Q8_0:
        stored = numbers.to(torch.int8).view(torch.uint8)
    else:
        low, high = (numbers + (8 if kind is BlockKind.Q4_0 else 0)).to(torch.uint8).split(16, -1)
        stored = low | high << 4
    return Packed(
        torch.cat([*(h.view(torch.uint8) for h in heads), stored], -1).flatten(-2), inputs
    )


def expand_in_torch(packed: Packed) -> Tensor:
    """`Packed.expanded` without the compiled code."""
    kind = packed.kind
    rows = packed.blocks.unflatten(-1, (-1, kind.bytes))
    scale = rows[..., :2].contiguous().view(torch.float16).float()
    if kind is BlockKind.Q8_0:
        whole = scale * rows[..., 2:].contiguous().view(torch.int8).float()
    else:
        pairs = rows[..., -16:]
        numbers = torch.cat([pairs & 15, pairs >> 4], -1).float()
        if kind is BlockKind.Q4_0:
            whole = scale * (numbers - 8)
        else:
            whole = scale * numbers + rows[..., 2:4].contiguous().view(torch.float16).float()
    return whole.flatten(-2)[..., : packed.inputs].contiguous()


def rounding_bound(x: Tensor, packed: Packed) -> Tensor:
    """How far the compiled product of rows [R, in] may lie from that of the expanded weight: half a
    step of each block of activations times the sizes of the weights it meets, [R, out].

    The sums themselves are rounded as fp32 sums are; that is not counted here.
    """
    inputs = packed.inputs
    pad = (0, -inputs % BLOCK)
    steps = torch.nn.functional.pad(x, pad).unflatten(-1, (-1, BLOCK)).abs().amax(-1) / 127
    sizes = torch.nn.functional.pad(packed.expanded().abs(), pad).unflatten(-1, (-1, BLOCK)).sum(-1)
    return steps @ sizes.mT / 2


def _steps(values: Tensor, scale: Tensor, least: int, most: int) -> Tensor:
    step = scale.float()
    return torch.where(step > 0, values / step, 0.0).round().clamp(least, most)
