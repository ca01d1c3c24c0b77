"""A whole decode round as one call of `decode.c`: pointers in, the lanes' new states out.

Documents of several frontiers may share a round, each at its own length, and come and go between
rounds. tests/parity/test_kernels.py holds a round equal to the torch layers, and every document of
a shared one equal to itself alone, bit for bit.
"""

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import c_long, c_void_p
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdt.model.blocks import Packed
from pdt.model.cache import SuffixBuffer
from pdt.model.gated_read import ReadMemory
from pdt.model.kernels.build import library
from pdt.model.kernels.held import Counts, HeldFrontier
from pdt.model.kernels.structs import NOTES, PLAN, Layer, Linear, RoundOf, RowOf
from pdt.model.linear import LowRankLinear, RMSNorm

if TYPE_CHECKING:
    from pdt.model.layer import DecoderLayer
    from pdt.model.pdt import Frontier, ParallelDecoder

MOST_ROWS = 32
"""Lanes × documents above which general matrix products are as good."""

Notes = Sequence[ReadMemory] | None


class Round(Protocol):
    """Tokens [B, K, T] and the notes → the last layer's states [B, K, T, D].

    With counts a lane takes in so many of its T tokens, and the rest is padding.
    """

    def __call__(
        self, tokens_BKT: Tensor, notes: Notes, counts_BK: Counts | None = None, /
    ) -> Tensor: ...


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
        fork = model.config.lanes.fork_layer
        layers = [*model.trunk.decoder_layers, *(layer.decoder for layer in model.lane_layers)]
        self.layers = (Layer * len(layers))()
        for index, (slot, layer) in enumerate(zip(self.layers, layers, strict=True)):
            self._set_layer(slot, layer)
            slot.prompt_lanes = 1 if index < fork else model.config.prompt_lanes
        for slot, upper in zip(self.layers[fork:], model.lane_layers, strict=True):
            for kind, module in ((PLAN, upper.plan_kv), (NOTES, upper.snc)):
                read = slot.read[kind]
                read.q, read.o = self._linear(module.q_proj), self._linear(module.o_proj)
                read.heads, read.in_state_units = module.heads, module.in_state_units

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
            lanes = self.model.config.lanes.count  # a change that all lanes share is read K times
            narrow, widen = (
                m.expand(lanes, *m.shape[-2:]) for m in (module.narrow, module.widen.mT)
            )
            dtype = torch.float16 if linear.kind else torch.float32  # as change.h finds them
            linear.narrow, linear.widen = (self._pointer(m.to(dtype)) for m in (narrow, widen))
            linear.rank = narrow.shape[1]
            return linear
        weight, bias = module.weight, module.bias
        assert isinstance(weight, Tensor | Packed)
        outs, ins = weight.shape[-2:]
        return Linear(
            weight=self._pointer(weight.blocks if isinstance(weight, Packed) else weight),
            kind=weight.kind if isinstance(weight, Packed) else 0,
            bias=None if bias is None else self._pointer(bias),  # type: ignore[arg-type]
            outs=outs,
            ins=ins,
            groups=1 if len(weight.shape) == 2 else weight.shape[0],
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
        self._counts_BK: Counts = []
        self._scratch = torch.empty(0)

    def __call__(
        self, tokens: Sequence[Tensor], notes: Sequence[Notes], counts: Sequence[Counts]
    ) -> list[Tensor]:
        """By frontier: tokens [B, K, T], of which counts are taken in → states [B, K, T, D]."""
        for held, read, some in zip(self._held, notes, counts, strict=True):
            held.take(some, read)
        self._lay_out([count for part in counts for count in part])
        started_BK = [row for held in self._held for row in held.frontier.taken.counts_BK]
        for row, (lane, document, t) in zip(self._rows, self._places, strict=True):
            row.position = started_BK[document][lane] + t
        most = max(part.shape[2] for part in tokens)
        tokens_BKT = torch.cat([F.pad(part, (0, most - part.shape[2])) for part in tokens])
        h_RD = self._compiled.model.trunk.embed_tokens(tokens_BKT[self._index])
        self._round.h = h_RD.data_ptr()
        self._library.pdt_round(ctypes.byref(self._round), ctypes.byref(self._layers))
        for held, some in zip(self._held, counts, strict=True):
            held.frontier.taken.add(some)
        h_BKTD = h_RD.new_zeros(*tokens_BKT.shape, h_RD.shape[1])
        h_BKTD[self._index] = h_RD
        return [
            h[:, :, : part.shape[2]]
            for h, part in zip(h_BKTD.split(self._sizes), tokens, strict=True)
        ]

    def _lay_out(self, counts_BK: Counts) -> None:
        """Which tokens are the rows of a round: by lane, then document, then position."""
        if counts_BK == self._counts_BK:
            return
        self._counts_BK = counts_BK
        lanes = range(self._round.lanes)
        runs = [(k, b, row[k]) for k in lanes for b, row in enumerate(counts_BK) if row[k]]
        self._places = [(k, b, t) for k, b, count in runs for t in range(count)]
        k, b, t = torch.tensor(self._places).T
        self._index = (b, k, t)
        writing = sorted({lane for lane, _, _ in runs})
        per_lane = [sum(row[lane] for row in counts_BK) for lane in writing]
        self._rows = (RowOf * len(self._places))(*(RowOf(k, b) for k, b, _ in self._places))
        tables = {
            "run": accumulate((count for *_, count in runs), initial=0),
            "lane": writing,
            "first": accumulate(per_lane, initial=0),
        }
        self._laid = {name: _longs(values) for name, values in tables.items()}
        for name, table in self._laid.items():
            setattr(self._round, name, ctypes.addressof(table))
        self._round.row = ctypes.addressof(self._rows)
        self._round.rows, self._round.runs = len(self._places), len(runs)
        self._round.writing = len(writing)
        size = self._library.pdt_round_scratch(ctypes.byref(self._round))
        if size > len(self._scratch):
            self._scratch = torch.empty(size)
            self._round.scratch = self._scratch.data_ptr()


def _longs(values: Iterable[int]) -> "ctypes.Array[c_long]":
    found = list(values)
    return (c_long * len(found))(*found)


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

    def __call__(self, tokens_BKT: Tensor, notes: Notes, counts_BK: Counts | None = None) -> Tensor:
        """States after the last layer, [B, K, T, D]; the caches grow by the tokens taken in."""
        B, K, T = tokens_BKT.shape
        return self._shared([tokens_BKT], [notes], [counts_BK or [[T] * K] * B])[0]


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module.weight, Tensor)
    return module.weight
