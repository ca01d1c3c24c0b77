"""What a configuration costs before a weight is loaded: parameters, memory, traffic.

Parameters are counted on the real modules, built on the meta device. Memory is arithmetic on the
same shapes. The ceiling is what packing can give on hardware bound by memory bandwidth.

Paper: Table 4, §3.6, Eq. 6.
"""

from dataclasses import dataclass

import torch
from torch import nn

from pdt.config import PdtConfig
from pdt.model.pdt import ParallelDecoder

FP32, BF16 = 4, 2
GiB = 1 << 30


@dataclass(frozen=True)
class Census:
    """Table 4's counts, by component. Paper: Table 4."""

    shared: dict[str, int]
    physical: dict[str, int]
    coordination: dict[str, int]

    @property
    def shared_total(self) -> int:
        return sum(self.shared.values())

    @property
    def physical_total(self) -> int:
        return sum(self.physical.values())

    @property
    def coordination_total(self) -> int:
        return sum(self.coordination.values())

    @property
    def total(self) -> int:
        return self.shared_total + self.physical_total + self.coordination_total


@dataclass(frozen=True)
class Traffic:
    """Weights that decoding must read, at batch one. Paper: §3.6, Eq. 6."""

    shared: int
    """The part that one row of any lane reads: an untied embedding is looked up, not read."""
    packed_round: int
    """One grouped round: the shared part once, every lane's stack once, for K tokens."""
    serial_rounds: int
    """K one-lane rounds for the same K tokens: the shared part K times."""

    @property
    def ceiling(self) -> float:
        """The most that packing can gain where weight traffic is the cost, whatever Eq. 6 says."""
        return self.serial_rounds / self.packed_round


@dataclass(frozen=True)
class Memory:
    """Bytes, by what holds them."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def meta_model(config: PdtConfig) -> ParallelDecoder:
    """The whole module without storage."""
    with torch.device("meta"):
        return ParallelDecoder(config)


def take_census(config: PdtConfig) -> Census:
    """From the configuration alone: no storage, no weights."""
    return census_of(meta_model(config))


def census_of(model: ParallelDecoder) -> Census:
    """Count a model's own parameters."""
    config = model.config
    layers, fork = model.lane_layers, config.lanes.fork_layer
    stacks = 1 if config.lanes.shared else config.lanes.count
    return Census(
        shared={
            "embedding": _count(model.trunk.embed_tokens),
            f"layers 0–{fork - 1}": _count(model.trunk.layers),
            **_bases(model),
            "final norm": _count(model.trunk.norm),
            "head" if model.trunk.lm_head else "head (is the embedding)": _count(
                model.trunk.lm_head
            ),
        },
        physical={
            f"{stacks} × layers {fork}–{config.trunk.shape.layers - 1}": sum(
                _count(layer.decoder) for layer in layers
            )
        },
        coordination={
            "planner": _count(model.planner),
            "plan memory": _count(model.plan_memory),
            "Plan-KV": sum(_count(layer.plan_kv) for layer in layers),
            "SNC": sum(_count(layer.snc) for layer in layers),
            "note writer": _count(model.note_writer.proj),
            "codebooks": _count(model.note_writer.vq),
            "heads": _count(model.heads),
        },
    )


def _bases(model: ParallelDecoder) -> dict[str, int]:
    """The frozen projections that changes of low rank stand on, where there are such."""
    count, config = _count(model.trunk.upper), model.config
    name = f"projections {config.lanes.fork_layer}–{config.trunk.shape.layers - 1}"
    return {name: count} if count else {}


def traffic(config: PdtConfig, census: Census | None = None) -> Traffic:
    """An untied embedding is looked up, not read through; a tied one is also the head."""
    census = census or take_census(config)
    lookup = 0 if config.trunk.shape.tied_head else census.shared["embedding"]
    shared, physical = census.shared_total - lookup, census.physical_total
    lanes = config.lanes.count
    serial = lanes * (shared + physical) if config.lanes.shared else lanes * shared + physical
    return Traffic(shared, shared + physical, serial)


def inference_memory(
    config: PdtConfig,
    census: Census,
    *,
    prompt_tokens: int,
    section_tokens: int,
    batch: int = 1,
    weight_bytes: int = BF16,
) -> Memory:
    """Weights and caches of a generation; the prompt below the fork is held once for all lanes."""
    lanes, fork = config.lanes.count, config.lanes.fork_layer
    token = kv_bytes(config, weight_bytes)
    return Memory(
        {
            "weights": census.total * weight_bytes,
            "prompt cache below the fork (shared)": batch * fork * prompt_tokens * token,
            "prompt cache above the fork": batch
            * config.prompt_lanes
            * config.upper_layers
            * prompt_tokens
            * token,
            "section caches": batch * lanes * config.trunk.shape.layers * section_tokens * token,
        }
    )


def expanded_prompt_cache(
    config: PdtConfig, *, prompt_tokens: int, batch: int = 1, weight_bytes: int = BF16
) -> int:
    """What the prompt cache below the fork would take if it were copied to every lane."""
    token = kv_bytes(config, weight_bytes)
    return batch * config.lanes.count * config.lanes.fork_layer * prompt_tokens * token


def kv_bytes(config: PdtConfig, element: int) -> int:
    """Keys and values of one token in one layer of one lane."""
    return 2 * config.trunk.shape.kv_heads * config.trunk.shape.head_width * element


def _count(module: nn.Module | None) -> int:
    return 0 if module is None else sum(parameter.numel() for parameter in module.parameters())
