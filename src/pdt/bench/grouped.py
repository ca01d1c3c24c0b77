"""One decode round: packed against three one-lane rounds, and against the memory's speed.

Paper: §3.6, Eq. 6, Table 3 (parallel execution).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pdt.bench.timing import Timing, interleave, memory_reader, ratio
from pdt.config import PdtConfig, load_config
from pdt.model.build import random_model
from pdt.model.census import FP32, kv_bytes, take_census, traffic
from pdt.model.gated_read import ReadMemory
from pdt.model.kernels.round import Round, rounds_of
from pdt.model.one_lane import one_lane
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.visibility import visibility_table

PROMPT_TOKENS = 64
SUBJECTS: dict[str, tuple[str, list[str]]] = {
    "nano": ("nano", []),
    "smollm2-135m": ("smollm2-135m", []),
    "smollm2-rank-16": ("smollm2-135m", ["lanes.bank=low_rank", "lanes.rank=16"]),
    # The canonical layer at its true width; three layers and a cut vocabulary keep it at 2 GB.
    "4b-slice": (
        "canonical",
        ["trunk.shape.layers=3", "lanes.fork_layer=2", "trunk.shape.vocabulary=16384"],
    ),
}


@dataclass(frozen=True)
class GroupedResult:
    """What one subject measured."""

    subject: str
    round_bytes: int
    """Weights and cache that a packed round must read."""
    packed: Timing
    separate: Timing
    memory: Timing
    """Reading `round_bytes` of plain memory."""
    limit_to_separate: float
    """What the ratio to three separate rounds could be at best: bytes over bytes."""

    @property
    def to_separate(self) -> tuple[float, float, float]:
        return ratio(self.packed, self.separate)

    @property
    def to_memory(self) -> tuple[float, float, float]:
        return ratio(self.packed, self.memory)


def bench_grouped(subjects: list[str], *, repeats: int) -> Iterator[GroupedResult]:
    for subject in subjects:
        preset, overrides = SUBJECTS[subject]
        yield _bench(subject, load_config(preset, overrides=overrides), repeats)


def round_bytes(config: PdtConfig, lanes: int, context: int) -> int:
    """What a round of `lanes` lanes reads in fp32: shared weights once, stacks, reads, caches."""
    census = take_census(config)
    shared = traffic(config, census).shared
    stacks = census.physical_total * lanes // config.lanes.count
    shape, reads = config.trunk.shape, config.reads
    # Plan-KV and SNC: query and output maps; their keys and values were projected at the barrier.
    coordination = 2 * config.upper_layers * 2 * shape.width * reads.width
    caches = (config.lanes.fork_layer + lanes * config.upper_layers) * context
    return (shared + stacks + coordination) * FP32 + caches * kv_bytes(config, FP32)


@torch.inference_mode()
def _bench(subject: str, config: PdtConfig, repeats: int) -> GroupedResult:
    model = random_model(config)
    lanes = config.lanes.count
    tokens = torch.zeros(1, PROMPT_TOKENS, dtype=torch.long)
    prompt = model.read_prompt(tokens)
    learned = model.plan(prompt)
    plans = PlanSet(learned.nodes_BKNP, torch.ones_like(learned.valid_BKN), learned.scores_BK)
    everyone = torch.ones(1, lanes, dtype=torch.bool)
    note = model.write_notes(torch.zeros(1, lanes, config.trunk.shape.width), everyone)
    bus = model.empty_bus().commit(0, note)
    budget = 2 * repeats + 16
    packed = rounds_of(model, model.open_lanes(prompt, plans, suffix_tokens=budget))
    packed_notes = model.read_notes(bus, 1)
    may_read = visibility_table(config.notes.condition, lanes)
    singles: list[tuple[ParallelDecoder, Round, list[ReadMemory] | None]] = []
    for lane in range(lanes):
        view = one_lane(model, lane)
        frontier = view.open_lanes(prompt, plans.select([lane]), suffix_tokens=budget)
        notes = view.read_notes(bus, 1, may_read[lane : lane + 1])
        singles.append((view, rounds_of(view, frontier), notes))
    token = torch.zeros(1, lanes, 1, dtype=torch.long)

    def packed_round() -> object:
        return model.logits(packed(token, packed_notes))

    def separate_rounds() -> object:
        return [view.logits(alone(token[:, :1], notes)) for view, alone, notes in singles]

    size = round_bytes(config, lanes, PROMPT_TOKENS)
    single = round_bytes(config, 1, PROMPT_TOKENS)
    sides = {
        "packed": packed_round,
        "separate": separate_rounds,
        "memory": memory_reader(size),
    }
    taken = interleave(sides, repeats=repeats)
    return GroupedResult(
        subject, size, taken["packed"], taken["separate"], taken["memory"], size / (lanes * single)
    )
