"""A whole decode round as one call of `decode.c`: pointers in, the lanes' new states out.

It is built once a frontier, because weights and caches do not move; a round sets how far the lanes
are, a barrier sets the notes. tests/parity/test_kernels.py holds it equal to the torch layers.
"""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import Structure, c_float, c_int, c_long, c_void_p
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pdt.model.cache import SuffixBuffer
from pdt.model.gated_read import GatedRead, ReadMemory
from pdt.model.kernels.build import library
from pdt.model.linear import LowRankLinear, RMSNorm
from pdt.model.rope import rotary

if TYPE_CHECKING:
    from pdt.model.layer import DecoderLayer
    from pdt.model.pdt import Frontier, ParallelDecoder

MOST_ROWS = 32
"""Lanes × documents above which general matrix products are as good."""


class _Linear(Structure):
    _fields_ = [
        ("weight", c_void_p), ("bias", c_void_p), ("narrow", c_void_p), ("widen", c_void_p),
        ("outs", c_long), ("ins", c_long), ("groups", c_long), ("rank", c_long),
    ]  # fmt: skip


class _Read(Structure):
    _fields_ = [
        ("q", _Linear), ("o", _Linear), ("k", c_void_p), ("v", c_void_p), ("readable", c_void_p),
        ("slots", c_long), ("heads", c_long), ("gate", c_float), ("pad", c_int),
    ]  # fmt: skip


class _Layer(Structure):
    _fields_ = [
        ("q", _Linear), ("k", _Linear), ("v", _Linear), ("o", _Linear),
        ("gate", _Linear), ("up", _Linear), ("down", _Linear),
        ("input_norm", c_void_p), ("post_norm", c_void_p),
        ("q_norm", c_void_p), ("k_norm", c_void_p),
        ("prompt_k", c_void_p), ("prompt_v", c_void_p),
        ("suffix_k", c_void_p), ("suffix_v", c_void_p),
        ("groups", c_long), ("prompt_lanes", c_long), ("plan", _Read), ("notes", _Read),
    ]  # fmt: skip


class _Round(Structure):
    _fields_ = [
        ("documents", c_long), ("lanes", c_long), ("width", c_long), ("query_heads", c_long),
        ("kv_heads", c_long), ("head_width", c_long), ("feed_forward", c_long),
        ("prompt_tokens", c_long), ("capacity", c_long), ("written", c_long), ("layers", c_long),
        ("rank", c_long),
        ("prompt_lengths", c_void_p), ("cos", c_void_p), ("sin", c_void_p), ("h", c_void_p),
        ("scratch", c_void_p), ("eps", c_float), ("threads", c_int),
    ]  # fmt: skip


Round = Callable[[Tensor, Sequence[ReadMemory] | None], Tensor]
"""One token a lane [B, K, 1] and the notes → the last layer's states [B, K, 1, D]."""


def rounds_of(model: "ParallelDecoder", frontier: "Frontier") -> Round:
    """How the rounds of this frontier run: compiled where that fits, else layer by layer."""
    if NativeRound.fits(model, frontier):
        return NativeRound(model, frontier)
    return partial(model.advance, frontier)


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
        compiled = library()
        assert compiled is not None
        self._library = compiled
        self._keep: list[Tensor] = []
        self._model, self._frontier = model, frontier
        self._notes: object = None
        shape, config = model.config.trunk.shape, model.config
        lanes, documents = config.lanes.count, len(frontier.lengths_B)
        buffers = [m for m in (*frontier.lower, *frontier.upper) if isinstance(m, SuffixBuffer)]
        layers = [*model.trunk.decoder_layers, *(layer.decoder for layer in model.lane_layers)]
        self._layers = (_Layer * len(layers))()
        for slot, layer, memory in zip(self._layers, layers, buffers, strict=True):
            self._set_layer(slot, layer, memory)
        upper = range(config.lanes.fork_layer, len(layers))
        self._upper = [self._layers[index] for index in upper]
        self._plans: object = None
        self._widest = max(
            shape.query_heads * shape.head_width,
            shape.feed_forward,
            shape.width,
            config.reads.width,
        )
        self._slots = max(config.planner.nodes, config.notes.window_blocks * lanes)
        # The angles of every position the lanes can reach, [B, capacity, X].
        positions = frontier.lengths_B[:, None] + torch.arange(buffers[0].capacity)
        turn = rotary(shape.rope, shape.head_width, positions, torch.float32)
        self._round = _Round(
            documents=documents,
            lanes=lanes,
            width=shape.width,
            query_heads=shape.query_heads,
            kv_heads=shape.kv_heads,
            head_width=shape.head_width,
            feed_forward=shape.feed_forward,
            prompt_tokens=buffers[0].prompt.length,
            capacity=buffers[0].capacity,
            layers=len(layers),
            rank=config.lanes.rank or 0,
            prompt_lengths=self._pointer(frontier.lengths_B.long()),
            cos=self._pointer(turn.cos),
            sin=self._pointer(turn.sin),
            eps=shape.norm_eps,
            threads=torch.get_num_threads(),
        )
        size = compiled.pdt_round_scratch(ctypes.byref(self._round), self._widest, self._slots)
        self._round.scratch = self._pointer(torch.empty(size))
        self._buffers = buffers

    def __call__(self, tokens_BK1: Tensor, notes: Sequence[ReadMemory] | None) -> Tensor:
        """States after the last layer, [B, K, 1, D]; the caches grow by one token."""
        if self._frontier.plan_reads is not self._plans:
            self._set_plans(self._frontier.plan_reads)
        if notes is not self._notes:
            self._set_notes(notes)
        h = self._model.trunk.embed_tokens(tokens_BK1[..., 0]).transpose(0, 1).contiguous()
        self._round.h = h.data_ptr()
        self._round.written = self._buffers[0].length
        for memory in self._buffers:
            memory.grow(1)
        self._frontier.written += 1
        self._library.pdt_round(
            ctypes.byref(self._round), ctypes.byref(self._layers), self._widest, self._slots
        )
        return h.transpose(0, 1).unsqueeze(2)

    def _set_layer(self, slot: _Layer, layer: "DecoderLayer", memory: SuffixBuffer) -> None:
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
        prompt = memory.prompt
        slot.prompt_lanes = prompt.k.shape[1]
        slot.prompt_k, slot.prompt_v = self._pointer(prompt.k), self._pointer(prompt.v)
        slot.suffix_k, slot.suffix_v = self._pointer(memory.k), self._pointer(memory.v)

    def _set_plans(self, plans: Sequence[ReadMemory]) -> None:
        self._plans, self._plan_tensors = plans, list[Tensor]()
        for slot, layer, plan in zip(self._upper, self._model.lane_layers, plans, strict=True):
            self._set_read(slot.plan, layer.plan_kv, plan, keep=self._plan_tensors)

    def _set_notes(self, notes: Sequence[ReadMemory] | None) -> None:
        self._notes, self._note_tensors = notes, list[Tensor]()
        for index, slot in enumerate(self._upper):
            if notes is None:
                slot.notes.slots = 0
                continue
            snc = self._model.lane_layers[index].snc
            self._set_read(slot.notes, snc, notes[index], keep=self._note_tensors)
            slot.notes.gate *= float(snc.inner_gate)

    def _set_read(
        self, slot: _Read, module: GatedRead, memory: ReadMemory, keep: list[Tensor] | None = None
    ) -> None:
        slot.q, slot.o = self._linear(module.q_proj), self._linear(module.o_proj)
        slot.k, slot.v = self._pointer(memory.k, keep), self._pointer(memory.v, keep)
        slot.readable = self._pointer(memory.readable_BKS.to(torch.uint8), keep)
        slot.slots, slot.heads = memory.k.shape[3], module.heads
        slot.gate = memory.gate * float(torch.sigmoid(module.residual_gate))

    def _linear(self, module: nn.Module) -> _Linear:
        if isinstance(module, LowRankLinear):
            linear = self._linear(module.base)
            linear.narrow, linear.widen = self._pointer(module.narrow), self._pointer(module.widen)
            linear.rank = module.narrow.shape[1]
            return linear
        weight, bias = _weight(module), module.bias
        outs, ins = weight.shape[-2:]
        return _Linear(
            weight=self._pointer(weight),
            bias=None if bias is None else self._pointer(bias),  # type: ignore[arg-type]
            outs=outs,
            ins=ins,
            groups=1 if weight.dim() == 2 else len(weight),
        )

    def _pointer(self, tensor: Tensor, keep: list[Tensor] | None = None) -> int:
        """The address of a contiguous tensor that stays alive as long as this round."""
        tensor = tensor.detach().contiguous()
        (self._keep if keep is None else keep).append(tensor)
        return tensor.data_ptr()


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module.weight, Tensor)
    return module.weight
