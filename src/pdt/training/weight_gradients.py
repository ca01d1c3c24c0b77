"""Weight gradients of a few rows at a time, taken together: one product instead of many.

A packed rollout calls every upper weight once a block. With one document the gradient of a block is
a product over 32 rows that writes a matrix as large as the weight, and autograd adds it to the last
block's: more bytes than arithmetic. While a `Gathering` is in force, each call leaves its rows and
their gradients, and a product is taken when `ROWS` of them are there. The sum is the same; what
lives longer is less than `ROWS` rows a lane and weight.

Paper: §6, Appendix A.
"""

from typing import Any

import torch
from torch import Tensor

from pdt.model import kernels

ROWS = 128
"""Rows a lane that one product takes; a call that has as many is not worth delaying."""


class Gathering:
    """The weights that one rollout has called; it lives as long as the rollout's graph."""

    def __init__(self) -> None:
        self._opened: dict[int, tuple[Tensor, Tensor, _Rows]] = {}

    def __call__(self, x_KRI: Tensor, weight_KOI: Tensor, bias_KO: Tensor | None) -> Tensor:
        """One product per lane, [K, R, out]; the weight's gradient comes with its last call's."""
        learns = torch.is_grad_enabled() and weight_KOI.requires_grad
        if not learns or x_KRI.shape[1] >= ROWS:
            return kernels.grouped_linear(x_KRI, weight_KOI, bias_KO)
        opened = self._opened.get(id(weight_KOI))
        if opened is None:
            rows = _Rows()
            # The weight is kept beside its key, so that no other tensor can take its id.
            opened = weight_KOI, _Sum.apply(weight_KOI, rows), rows
            self._opened[id(weight_KOI)] = opened
        _, token, rows = opened
        y = _Product.apply(x_KRI, weight_KOI.detach(), token, rows)
        return y if bias_KO is None else y + bias_KO[:, None]


class _Rows:
    """What calls have left of one weight: inputs, gradients of outputs, and products taken."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []  # [K, R, in]
        self.gradients: list[Tensor] = []  # [K, R, out]
        self.total_KOI: Tensor | None = None

    def add(self, x_KRI: Tensor, gradient_KRO: Tensor) -> None:
        self.inputs.append(x_KRI)
        self.gradients.append(gradient_KRO)
        if sum(x.shape[1] for x in self.inputs) >= ROWS:
            self._multiply()

    def take(self) -> Tensor | None:
        """The whole gradient; what comes later belongs to another backward pass."""
        if self.inputs:
            self._multiply()
        total, self.total_KOI = self.total_KOI, None
        return total

    def _multiply(self) -> None:
        x_KRI = torch.cat(self.inputs, dim=1)
        gradient_KOR = torch.cat(self.gradients, dim=1).transpose(1, 2)
        self.inputs, self.gradients = [], []
        if self.total_KOI is None:
            self.total_KOI = torch.bmm(gradient_KOR, x_KRI)
        else:
            self.total_KOI.baddbmm_(gradient_KOR, x_KRI)


class _Sum(torch.autograd.Function):
    """A weight's place in the graph below all its calls: autograd comes here after the last one."""

    @staticmethod
    def forward(ctx: Any, weight_KOI: Tensor, rows: _Rows) -> Tensor:
        ctx.rows = rows
        return weight_KOI.new_empty(0)

    @staticmethod
    def backward(ctx: Any, token: Tensor) -> tuple[Tensor | None, None]:
        return ctx.rows.take(), None


class _Product(torch.autograd.Function):
    """A call: its own gradient to the input, its rows to the sum."""

    @staticmethod
    def forward(ctx: Any, x_KRI: Tensor, weight_KOI: Tensor, token: Tensor, rows: _Rows) -> Tensor:
        ctx.rows = rows
        ctx.save_for_backward(x_KRI, weight_KOI)
        return torch.bmm(x_KRI, weight_KOI.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient_KRO: Tensor) -> tuple[Tensor | None, None, Tensor, None]:
        x_KRI, weight_KOI = ctx.saved_tensors
        ctx.rows.add(x_KRI, gradient_KRO)
        needed = ctx.needs_input_grad[0]
        below = torch.bmm(gradient_KRO, weight_KOI) if needed else None
        return below, None, weight_KOI.new_empty(0), None
