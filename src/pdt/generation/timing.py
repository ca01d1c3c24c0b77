"""The time of one packed answer, whole and round by round.

Paper: §3.6, Table 3 (parallel execution).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pdt.generation.events import Done, PlanReady, Round
from pdt.generation.ledger import Ledger
from pdt.generation.loop import start
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.tokenizer import StudentTokenizer


@dataclass(frozen=True)
class TimedAnswer:
    """One document, from the call to its last token."""

    seconds: float
    round_seconds: tuple[float, ...]
    """Each round with the barrier before it; the first is the choice from the prompt's states."""
    ledger: Ledger


def time_answer(
    model: ParallelDecoder,
    prompt: Sequence[int],
    settings: GenerationSettings,
    *,
    tokenizer: StudentTokenizer | None = None,
    plans: PlanSet | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TimedAnswer:
    """Write one answer and keep the time of every round."""
    begun = clock()
    stamps, ledger = [], None
    for event in start(model, [prompt], settings, tokenizer=tokenizer, plans=plans).events():
        if isinstance(event, PlanReady | Round):
            stamps.append(clock())
        elif isinstance(event, Done):
            ledger = event.ledger
    assert ledger is not None
    rounds = tuple(after - before for before, after in pairwise(stamps))
    return TimedAnswer(clock() - begun, rounds, ledger)
