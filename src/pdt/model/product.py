"""The product of rows with a weight: what every layer calls, whichever way it is taken.

Which way is not the layer's to know: the compiled kernel or torch by one rule (`kernels`), and for
lane banks whatever a caller has put in force around the layers, as training does to take the
gradients of several blocks at once.

Paper: §3.3.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

from pdt.model import kernels
from pdt.model.blocks import Packed

GroupedProduct = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""x_KRI, weight_KOI and bias_KO → [K, R, out]."""

_in_force: ContextVar[GroupedProduct | None] = ContextVar("grouped product", default=None)


def product(x_BKTI: Tensor, weight: Tensor | Packed, bias: Tensor | None = None) -> Tensor:
    """Every row times `weight` [out, in], or every lane's rows times its slice of [K, out, in]."""
    if isinstance(weight, Packed):
        return _packed(x_BKTI, weight, bias)
    if weight.dim() == 2:
        return kernels.linear(x_BKTI, weight, bias)
    B, K, T, inputs = x_BKTI.shape
    x_KRI = x_BKTI.transpose(0, 1).reshape(K, B * T, inputs)
    grouped = _in_force.get() or kernels.grouped_linear
    return grouped(x_KRI, weight, bias).unflatten(1, (B, T)).transpose(0, 1)


def _packed(x_BKTI: Tensor, weight: Packed, bias: Tensor | None) -> Tensor:
    if len(weight.shape) == 2:
        y = kernels.packed_linear(x_BKTI.reshape(1, -1, x_BKTI.shape[-1]), weight)
        y = y.view(*x_BKTI.shape[:-1], -1)
        return y if bias is None else y + bias
    B, K, T, _ = x_BKTI.shape
    y = kernels.packed_linear(x_BKTI.transpose(0, 1).reshape(K, B * T, -1), weight)
    y = y if bias is None else y + bias[:, None, :]
    return y.unflatten(1, (B, T)).transpose(0, 1)


@contextmanager
def grouped_by(way: GroupedProduct) -> Iterator[None]:
    """Inside, lane banks are multiplied this way."""
    before = _in_force.set(way)
    try:
        yield
    finally:
        _in_force.reset(before)
