"""Products of a few rows with a large weight, at the memory's speed.

One rule chooses: on a CPU, in fp32, without autograd, for at most `FEW_ROWS` rows the compiled
kernel reads each weight once; otherwise torch does it (docs/decisions/kernels.md).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.model.blocks import BLOCK, Packed, expand_in_torch
from pdt.model.kernels.build import library

FEW_ROWS = 16
_ROUNDED = 44
"""Bytes of `rounded` in blocks.h: 32 activations in eight bits, their scale, two sums of them."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`, for any leading axes."""
    rows = x.numel() // x.shape[-1]
    if not _few(x, weight, rows):
        return F.linear(x, weight, bias)
    y = _rows_linear(x.reshape(1, rows, -1), weight[None])
    y = y.view(*x.shape[:-1], -1)
    return y if bias is None else y + bias


def grouped_linear(x_KRI: Tensor, weight_KOI: Tensor, bias_KO: Tensor | None = None) -> Tensor:
    """One product per lane, all lanes in one call: [K, R, out]."""
    if _few(x_KRI, weight_KOI, x_KRI.shape[1]):
        y = _rows_linear(x_KRI, weight_KOI)
        return y if bias_KO is None else y + bias_KO[:, None, :]
    if bias_KO is None:
        return torch.bmm(x_KRI, weight_KOI.transpose(1, 2))
    return torch.baddbmm(bias_KO[:, None, :], x_KRI, weight_KOI.transpose(1, 2))


def _few(x: Tensor, weight: Tensor, rows: int) -> bool:
    wants_gradient = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    return (
        rows <= FEW_ROWS
        and not wants_gradient
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and weight.is_contiguous()
        and library() is not None
    )


def _rows_linear(x_GRI: Tensor, weight_GOI: Tensor) -> Tensor:
    compiled = library()
    assert compiled is not None
    G, R, inputs = x_GRI.shape
    outputs = weight_GOI.shape[1]
    x = x_GRI.contiguous()
    y = x.new_empty(G, R, outputs)
    compiled.pdt_rows_linear(
        weight_GOI.data_ptr(), x.data_ptr(), y.data_ptr(), G, R, outputs, inputs,
        torch.get_num_threads(),
    )  # fmt: skip
    return y


def packed_linear(x_GRI: Tensor, weight: Packed) -> Tensor:
    """Rows [G, R, in] times blocks [G, out, in], or one [out, in] for all groups → [G, R, out]."""
    wants_gradient = torch.is_grad_enabled() and x_GRI.requires_grad
    compiled = library()
    floats = x_GRI.device.type == "cpu" and x_GRI.dtype == torch.float32
    if compiled is None or wants_gradient or not floats:
        return x_GRI @ weight.expanded().to(x_GRI).mT
    G, R, inputs = x_GRI.shape
    x, blocks = x_GRI.contiguous(), weight.blocks.contiguous()
    outputs = blocks.shape[-2]
    y = x.new_empty(G, R, outputs)
    rounded = torch.empty(G * R * -(-inputs // BLOCK) * _ROUNDED, dtype=torch.uint8)
    compiled.pdt_blocks_linear(
        weight.kind, blocks.data_ptr(), x.data_ptr(), y.data_ptr(), G, R, outputs, inputs,
        rounded.data_ptr(), torch.get_num_threads(),
    )  # fmt: skip
    return y


def expand_blocks(packed: Packed) -> Tensor:
    """Every number of packed blocks in fp32, by the compiled code where there is one."""
    compiled, blocks = library(), packed.blocks
    if compiled is None or blocks.device.type != "cpu":
        return expand_in_torch(packed)
    blocks = blocks.contiguous()
    out = torch.empty(packed.shape)
    rows = blocks.numel() // blocks.shape[-1]
    compiled.pdt_blocks_expand(packed.kind, blocks.data_ptr(), out.data_ptr(), rows, packed.inputs)
    return out
