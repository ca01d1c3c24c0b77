"""Parallel execution: one lane, three serial lanes and the packed frontier on the same documents.

Depth, time, memory and traces are separate numbers.

Paper: §3.6, Table 3 (parallel execution).
"""

from typing import Annotated

from pydantic import Field

from pdt.contract import Contract, Index

PACKED, SERIAL, ONE = "packed", "three serial lanes", "one lane"
SIDES = (PACKED, SERIAL, ONE)


class ExecutionRun(Contract):
    """One document written one way, once."""

    side: str
    """packed, serial or one lane."""
    record_id: str
    repeat: Index = 0
    rounds: Index
    """Dependent forwards, one after another, that the answer took."""
    tokens: Index
    seconds: Annotated[float, Field(gt=0)]
    """The complete answer: prompt, plan, every token."""
    cpu_seconds: Annotated[float, Field(ge=0)] | None = None
    """What the process spent on it, whoever else had the machine."""
    plan_seconds: float | None = None
    prefill_seconds: float | None = None
    decode_seconds: float | None = None
    barrier_seconds: float | None = None
    shared_cache_bytes: Index | None = None
    private_cache_bytes: Index | None = None
    round_seconds: tuple[float, ...] = ()
    """The trace: time of each round."""

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


class SideMemory(Contract):
    """The memory of a process that does nothing but write one document one way."""

    side: str
    loaded_bytes: Index
    """Its most before the first token: code and weights."""
    peak_bytes: Index
    """Its most at the end."""


class Execution(Contract):
    """The ledger of an evaluation."""

    runs: tuple[ExecutionRun, ...]
    memory: tuple[SideMemory, ...] = ()
    """By way; empty where the checkpoint lies in no directory."""
    peak_memory_bytes: Index
    """Of the largest process, weights included."""
    documents_per_second: float
    """Of the free generations of this evaluation, batched, in one process."""

    def of_side(self, side: str) -> tuple[ExecutionRun, ...]:
        return tuple(run for run in self.runs if run.side == side)
