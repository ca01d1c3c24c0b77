"""A whole decode round as one call of `decode.c`: pointers in, the lanes' new states out.

Documents of several frontiers may share a round, each at its own length, and come and go between
rounds. tests/parity/test_kernels.py holds a round equal to the torch layers, and every document of
a shared one equal to itself alone, bit for bit.
"""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_void_p
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pdt.model.cache import SuffixBuffer
from pdt.model.gated_read import ReadMemory
from pdt.model.kernels.build import library
from pdt.model.kernels.held import HeldFrontier
from pdt.model.kernels.structs import NOTES, PLAN, Layer, Linear, RoundOf
from pdt.model.linear import LowRankLinear, RMSNorm

if TYPE_CHECKING:
    from pdt.model.layer import DecoderLayer
    from pdt.model.pdt import Frontier, ParallelDecoder

MOST_ROWS = 32
"""Lanes × documents above which general matrix products are as good."""

Notes = Sequence[ReadMemory] | None
Round = Callable[[Tensor, Notes], Tensor]
"""One token a lane [B, K, 1] and the notes → the last layer's states [B, K, 1, D]."""


def rounds_of(model: "ParallelDecoder", frontier: "Frontier") -> Round:
    """How the rounds of this frontier run: compiled where that fits, else layer by layer."""
    if NativeRound.fits(model, frontier):
        return NativeRound(model, frontier)
    return partial(model.advance, frontier)


class CompiledLayers:
    """Every weight of a model as `decode.c` finds it; they do not move."""

    def __init__(self, model: "ParallelDecoder") -> None:
        self.model = model
        self._keep: list[Tensor] = []
        lanes, fork = model.config.lanes.count, model.config.lanes.fork_layer
        layers = [*model.trunk.decoder_layers, *(layer.decoder for layer in model.lane_layers)]
        self.layers = (Layer * len(layers))()
        for index, (slot, layer) in enumerate(zip(self.layers, layers, strict=True)):
            self._set_layer(slot, layer)
            slot.prompt_lanes = 1 if index < fork else lanes
        for slot, upper in zip(self.layers[fork:], model.lane_layers, strict=True):
            for kind, module in ((PLAN, upper.plan_kv), (NOTES, upper.snc)):
                read = slot.read[kind]
                read.q, read.o = self._linear(module.q_proj), self._linear(module.o_proj)
                read.heads = module.heads

    def _set_layer(self, slot: Layer, layer: "DecoderLayer") -> None:
        attention, mlp = layer.self_attn, layer.mlp
        for name in ("q", "k", "v", "o"):
            setattr(slot, name, self._linear(getattr(attention, f"{name}_proj")))
        for name in ("gate", "up", "down"):
            setattr(slot, name, self._linear(getattr(mlp, f"{name}_proj")))
        slot.input_norm = self._pointer(_weight(layer.input_layernorm))
        slot.post_norm = self._pointer(_weight(layer.post_attention_layernorm))
        if isinstance(attention.q_norm, RMSNorm) and isinstance(attention.k_norm, RMSNorm):
            slot.q_norm = self._pointer(attention.q_norm.weight)
            slot.k_norm = self._pointer(attention.k_norm.weight)
        norm = _weight(layer.input_layernorm)
        slot.groups = 1 if norm.dim() == 1 else len(norm)

    def _linear(self, module: nn.Module) -> Linear:
        if isinstance(module, LowRankLinear):
            linear = self._linear(module.base)
            linear.narrow, linear.widen = self._pointer(module.narrow), self._pointer(module.widen)
            linear.rank = module.narrow.shape[1]
            return linear
        weight, bias = _weight(module), module.bias
        outs, ins = weight.shape[-2:]
        return Linear(
            weight=self._pointer(weight),
            bias=None if bias is None else self._pointer(bias),  # type: ignore[arg-type]
            outs=outs,
            ins=ins,
            groups=1 if weight.dim() == 2 else len(weight),
        )

    def _pointer(self, tensor: Tensor) -> int:
        """The address of a contiguous tensor that stays alive as long as this."""
        tensor = tensor.detach().contiguous()
        self._keep.append(tensor)
        return tensor.data_ptr()


class SharedRound:
    """The round of these frontiers together, ready to be called; built anew when they change."""

    def __init__(self, compiled: CompiledLayers, held: Sequence[HeldFrontier]) -> None:
        found = library()
        assert found is not None
        self._library, self._compiled, self._held = found, compiled, list(held)
        self._sizes = [one.documents for one in self._held]
        config, documents = compiled.model.config, sum(self._sizes)
        shape, lanes = config.trunk.shape, config.lanes.count
        self._layers = type(compiled.layers).from_buffer_copy(compiled.layers)
        addresses = [one.addresses() for one in self._held]
        self._tables = [
            (c_void_p * documents)(*(a for _, layers in addresses for a in layers[index]))
            for index in range(len(self._layers))
        ]
        for slot, table in zip(self._layers, self._tables, strict=True):
            slot.held = ctypes.addressof(table)
        self._documents = (c_void_p * documents)(*(a for own, _ in addresses for a in own))
        slots = max(config.planner.nodes, config.notes.window_blocks * lanes)
        self._round = RoundOf(
            documents=documents,
            lanes=lanes,
            width=shape.width,
            query_heads=shape.query_heads,
            kv_heads=shape.kv_heads,
            head_width=shape.head_width,
            feed_forward=shape.feed_forward,
            layers=len(self._layers),
            rank=config.lanes.rank or 0,
            widest=max(
                shape.query_heads * shape.head_width,
                shape.feed_forward,
                shape.width,
                config.reads.width,
            ),
            longest=max(slots, *(one.longest for one in self._held)),
            document=ctypes.addressof(self._documents),
            eps=shape.norm_eps,
            threads=torch.get_num_threads(),
        )
        self._scratch = torch.empty(found.pdt_round_scratch(ctypes.byref(self._round)))
        self._round.scratch = self._scratch.data_ptr()

    def __call__(self, tokens: Sequence[Tensor], notes: Sequence[Notes]) -> list[Tensor]:
        """By frontier: one token a lane [B, K, 1] and the notes → states [B, K, 1, D]."""
        for held, read in zip(self._held, notes, strict=True):
            held.take(read)
        tokens_BK = torch.cat([part[..., 0] for part in tokens])
        embedded = self._compiled.model.trunk.embed_tokens(tokens_BK)
        h_KBD = embedded.transpose(0, 1).contiguous()
        self._round.h = h_KBD.data_ptr()
        self._library.pdt_round(ctypes.byref(self._round), ctypes.byref(self._layers))
        return list(h_KBD.transpose(0, 1).unsqueeze(2).split(self._sizes))


class NativeRound:
    """The round of one frontier, ready to be called."""

    @staticmethod
    def fits(model: "ParallelDecoder", frontier: "Frontier") -> bool:
        """Decoding buffers, fp32 on a CPU, no autograd, a handful of rows."""
        rows = len(frontier.lengths_B) * model.config.lanes.count
        return (
            not torch.is_grad_enabled()
            and all(isinstance(memory, SuffixBuffer) for memory in frontier.upper)
            and rows <= MOST_ROWS
            and model.trunk.norm.weight.dtype == torch.float32
            and model.device.type == "cpu"
            and library() is not None
        )

    def __init__(self, model: "ParallelDecoder", frontier: "Frontier") -> None:
        self._shared = SharedRound(CompiledLayers(model), [HeldFrontier(model, frontier)])

    def __call__(self, tokens_BK1: Tensor, notes: Notes) -> Tensor:
        """States after the last layer, [B, K, 1, D]; the caches grow by one token."""
        return self._shared([tokens_BK1], [notes])[0]


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module.weight, Tensor)
    return module.weight
