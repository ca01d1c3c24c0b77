"""What a generation cost, as separate numbers that are never multiplied into one.

Depth (rounds), arithmetic, memory and wall time answer different questions.

Paper: §3.6, Eq. 6, Table 3 (parallel execution).
"""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from pdt.model.census import census_of, traffic
from pdt.model.pdt import Frontier, ParallelDecoder


@dataclass
class Ledger:
    """Filled in while a generation runs."""

    rounds: int = 0
    """Grouped forwards, with the one over the prompt that gives every lane its first token."""
    lane_lengths: list[list[int]] = field(default_factory=list)
    """Tokens by document and lane."""
    drafted_tokens: list[list[int]] = field(default_factory=list)
    """By document and lane: tokens taken in before they were chosen."""
    accepted_tokens: list[list[int]] = field(default_factory=list)
    """By document and lane: those that were chosen then, and saved the lane a round each."""
    weights_read_per_round: int = 0
    multiply_adds_per_round: int = 0
    """Through weights, for every lane and document; attention over the caches comes on top."""
    shared_cache_bytes: int = 0
    private_cache_bytes: int = 0
    peak_memory_bytes: int = 0
    """Of the whole process, weights included."""
    seconds: dict[str, float] = field(default_factory=dict)
    """plan, prefill, decode, sample, barrier, total."""
    without_nodes: list[list[bool]] = field(default_factory=list)
    """By document and lane: the planner gave it no valid node, and its likeliest was taken."""
    troubles: list[list[str | None]] = field(default_factory=list)
    """By document and lane: what is wrong with its text, such as `repeats itself`; None if not."""
    first_token_seconds: list[list[float]] = field(default_factory=list)
    """From the start to each lane's first token."""

    @property
    def tokens(self) -> int:
        return sum(map(sum, self.lane_lengths))

    @property
    def accepted_per_round(self) -> float:
        """Drafted tokens that were right, a grouped forward after the prompt's; all lanes."""
        return sum(map(sum, self.accepted_tokens)) / max(1, self.rounds - 1)

    @property
    def span_reductions(self) -> list[float]:
        """Eq. 6 per document: Σ L_k / max L_k, a statement about depth and not about time."""
        return [
            sum(lengths) / max(lengths) if any(lengths) else 0.0 for lengths in self.lane_lengths
        ]

    @property
    def tokens_per_second(self) -> float:
        spent = sum(self.seconds.get(part, 0.0) for part in ("decode", "sample", "barrier"))
        return self.tokens / spent if spent else 0.0

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - start

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "tokens": self.tokens,
            "longest_lanes": [max(lengths, default=0) for lengths in self.lane_lengths],
            "accepted_per_round": self.accepted_per_round,
            "span_reductions": self.span_reductions,
            "tokens_per_second": self.tokens_per_second,
        }


def count_work(ledger: Ledger, model: ParallelDecoder, documents: int) -> None:
    """Weights read and multiply-adds of one packed round, from the shapes."""
    census = census_of(model)
    weights = traffic(model.config, census)
    lanes = model.config.lanes.count
    reads = sum(
        p.numel()
        for layer in model.lane_layers
        for read in (layer.plan_kv, layer.snc)
        for p in (*read.q_proj.parameters(), *read.o_proj.parameters())
    )
    ledger.weights_read_per_round = weights.packed_round + reads
    ledger.multiply_adds_per_round = documents * (
        lanes * (weights.shared + reads) + census.physical_total
    )


def count_memory(ledger: Ledger, frontier: Frontier) -> None:
    """Cache bytes as they stand, and the process's peak."""
    ledger.shared_cache_bytes, ledger.private_cache_bytes = _cache_bytes(frontier)
    ledger.peak_memory_bytes = peak_memory()


def count_serial_memory(ledger: Ledger, frontiers: Sequence[Frontier]) -> None:
    """The same of lanes that were written one after another: the prompt below the fork is one."""
    found = [_cache_bytes(frontier) for frontier in frontiers]
    ledger.shared_cache_bytes = found[0][0]
    ledger.private_cache_bytes = sum(private for _, private in found)
    ledger.peak_memory_bytes = peak_memory()


def peak_memory() -> int:
    """The most this process has held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _cache_bytes(frontier: Frontier) -> tuple[int, int]:
    """The prompt below the fork, which all lanes share, and what each has of its own."""
    shared = private = 0
    for below, memories in ((True, frontier.lower), (False, frontier.upper)):
        for memory in memories:
            prompt, *suffix = (2 * part.k.numel() * part.k.element_size() for part in memory.past)
            shared += prompt if below else 0
            private += sum(suffix) + (0 if below else prompt)
    return shared, private
