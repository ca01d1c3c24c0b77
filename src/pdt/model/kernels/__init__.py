"""Products of a few rows with a large weight, at the memory's speed.

One rule chooses: on a CPU, in fp32, without autograd, for at most `FEW_ROWS` rows the compiled
kernel reads each weight once; otherwise torch does it (docs/decisions/kernels.md).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.model.kernels.build import library

FEW_ROWS = 16


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
