"""Time one lane, three serial lanes and the packed frontier on the same documents.

Whatever else the machine does falls on all three alike: they are written in turn, several times,
and CPU time is kept beside the clock's. Memory is measured in a process of its own for each.

Paper: §3.6, Table 3 (parallel execution).
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from pdt.evaluation.generate.checkpoints import load_for_evaluation
from pdt.evaluation.lines.execution import (
    ONE,
    PACKED,
    SERIAL,
    SIDES,
    ExecutionRun,
    SideMemory,
)
from pdt.generation.ledger import Ledger, peak_memory
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.generation.timing import time_answer
from pdt.jobs import run_jobs
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.terms import NotesCondition
from pdt.tokenizer import StudentTokenizer


def measure_execution(
    model: ParallelDecoder,
    tokenizer: StudentTokenizer,
    prompts: Sequence[Sequence[int]],
    plans: Sequence[PlanSet | None],
    record_ids: Sequence[str],
    settings: GenerationSettings,
    *,
    repeats: int,
) -> list[ExecutionRun]:
    """Write each document three ways, in turn and again; a first packed run is thrown away.

    A plan of None is made by the planner, inside the time of the answer.
    """
    runs: list[ExecutionRun] = []
    _write(model, tokenizer, prompts[0], plans[0], record_ids[0], settings, PACKED, 0)
    for repeat in range(repeats):
        for number, (prompt, plan, name) in enumerate(zip(prompts, plans, record_ids, strict=True)):
            # Nobody always comes first: what a way leaves in the caches is no way's luck.
            first = (repeat + number) % len(SIDES)
            for side in (*SIDES[first:], *SIDES[:first]):
                runs.append(_write(model, tokenizer, prompt, plan, name, settings, side, repeat))
    return runs


def _write(
    model: ParallelDecoder,
    tokenizer: StudentTokenizer,
    prompt: Sequence[int],
    plan: PlanSet | None,
    name: str,
    settings: GenerationSettings,
    side: str,
    repeat: int,
) -> ExecutionRun:
    begun, spent = time.perf_counter(), time.process_time()
    round_seconds: tuple[float, ...] = ()
    if side == PACKED:
        answer = time_answer(model, prompt, settings, tokenizer=tokenizer, plans=plan)
        ledger, round_seconds = answer.ledger, answer.round_seconds
    else:
        ledger, lanes = Ledger(), [0] if side == ONE else None
        write_serially(
            model, prompt, settings, plans=plan, eos=(tokenizer.eos_id,), lanes=lanes, ledger=ledger
        )
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - spent
    return ExecutionRun(
        side=side,
        record_id=name,
        repeat=repeat,
        rounds=ledger.rounds,
        tokens=ledger.tokens,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        plan_seconds=ledger.seconds.get("plan", 0.0),
        prefill_seconds=ledger.seconds["prefill"],
        decode_seconds=ledger.seconds["decode"],
        barrier_seconds=ledger.seconds.get("barrier", 0.0),
        shared_cache_bytes=ledger.shared_cache_bytes,
        private_cache_bytes=ledger.private_cache_bytes,
        # A trace a document is enough to look at.
        round_seconds=round_seconds if repeat == 0 else (),
    )


def measure_memory(
    checkpoint: Path, prompt: Sequence[int], settings: GenerationSettings
) -> tuple[SideMemory, ...]:
    """One document written each way in a process that has done nothing else."""
    begin = partial(_alone, checkpoint, list(prompt), settings)
    doing, remedy = "measured its memory", "Free some memory, then run it again."
    found = (run_jobs(begin, [side], workers=1, doing=doing, remedy=remedy) for side in SIDES)
    return tuple(chain.from_iterable(found))


def _alone(
    checkpoint: Path, prompt: list[int], settings: GenerationSettings
) -> Callable[[str], SideMemory]:
    model, _ = load_for_evaluation(checkpoint, NotesCondition.BUS)
    loaded = peak_memory()

    def remember(side: str) -> SideMemory:
        if side == PACKED:
            time_answer(model, prompt, settings, tokenizer=model.tokenizer)
        else:
            eos = () if model.tokenizer is None else (model.tokenizer.eos_id,)
            lanes = [0] if side != SERIAL else None
            write_serially(model, prompt, settings, eos=eos, lanes=lanes)
        return SideMemory(side=side, loaded_bytes=loaded, peak_bytes=peak_memory())

    return remember
