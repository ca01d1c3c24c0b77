"""Interleaved timing on a noisy machine: every side runs in every repeat, medians and quartiles."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of one side over all repeats."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """First and third quartile."""
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return low, high


def interleave(
    sides: Mapping[str, Callable[[], object]],
    *,
    repeats: int,
    warmup: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Run all sides in turn, `repeats` times, so that a slow spell of the machine hits each."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(warmup + repeats):
        for name, side in sides.items():
            start = clock()
            side()
            elapsed = clock() - start
            if repeat >= warmup:
                taken[name].append(elapsed)
    return {name: Timing(tuple(times)) for name, times in taken.items()}


def ratio(over: Timing, under: Timing) -> tuple[float, float, float]:
    """Median of the per-repeat ratios with quartiles: noise that hits both sides cancels."""
    pairs = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    low, middle, high = statistics.quantiles(pairs, n=4)
    return middle, low, high


def memory_reader(size: int) -> Callable[[], object]:
    """Reads `size` bytes of memory once: the time no decoder that must read them can beat."""
    buffer = torch.ones(size // 4)
    return buffer.sum
