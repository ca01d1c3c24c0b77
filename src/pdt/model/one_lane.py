"""The same model with one lane's stack alone: what serial decoding runs, round by round.

Weights are views of the whole model's, so both sides of a comparison read the same memory.

Paper: §7.1, Table 3 (parallel execution).
"""

import copy
from typing import TypeVar

from torch import nn

from pdt.config import PdtConfig
from pdt.model.layer import LaneLayer
from pdt.model.pdt import ParallelDecoder

M = TypeVar("M", bound=nn.Module)


def one_lane(model: ParallelDecoder, lane: int) -> ParallelDecoder:
    """Lane axis of length one, at physical address `lane`: it reads the whole bus as that lane."""
    edited = model.config.model_dump()
    edited["lanes"]["count"] = 1
    view = copy.copy(model)
    view._modules = dict(model._modules)
    view.config = PdtConfig.model_validate(edited)
    view.lanes = nn.ModuleList(_lane_layer(layer, lane, view.config) for layer in model.lane_layers)
    return view


def _lane_layer(layer: LaneLayer, lane: int, config: PdtConfig) -> LaneLayer:
    view = copy.copy(layer)
    view._modules = dict(layer._modules)
    if not config.lanes.shared:
        view.decoder = _slice(layer.decoder, lane)
    snc = copy.copy(layer.snc)
    snc._modules = dict(layer.snc._modules)
    snc.address = copy.copy(layer.snc.address)
    snc.address._buffers = {"reader_K": layer.snc.address.reader_K[lane : lane + 1]}
    view.snc = snc
    return view


def _slice(module: M, lane: int) -> M:
    """The module tree again, every parameter cut to one lane without copying."""
    view = copy.copy(module)
    view._parameters = {
        name: None if p is None else nn.Parameter(p[lane : lane + 1], requires_grad=False)
        for name, p in module._parameters.items()
    }
    view._buffers = {  # of blocks, a lane each
        name: value if value is None or value.dim() < 3 else value[lane : lane + 1]
        for name, value in module._buffers.items()
    }
    view._modules = {n: m if m is None else _slice(m, lane) for n, m in module._modules.items()}
    return view
