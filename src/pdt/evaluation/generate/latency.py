"""Time one lane, three serial lanes and the packed frontier on the same documents.

Paper: §3.6, Table 3 (parallel execution).
"""

import resource
import sys
import time
from collections.abc import Sequence

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL, ExecutionRun
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.generation.timing import time_answer
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.tokenizer import StudentTokenizer


def measure_execution(
    model: ParallelDecoder,
    tokenizer: StudentTokenizer,
    prompts: Sequence[Sequence[int]],
    plans: Sequence[PlanSet],
    record_ids: Sequence[str],
    settings: GenerationSettings,
) -> list[ExecutionRun]:
    """Write each document three ways, in turn; the first packed run is thrown away."""
    eos = (tokenizer.eos_id,)
    runs: list[ExecutionRun] = []
    _packed(model, tokenizer, prompts[0], plans[0], record_ids[0], settings)
    for prompt, plan, name in zip(prompts, plans, record_ids, strict=True):
        runs.append(_packed(model, tokenizer, prompt, plan, name, settings))
        for side, lanes in ((SERIAL, None), (ONE, [0])):
            begun = time.perf_counter()
            written, _ = write_serially(model, prompt, settings, plans=plan, eos=eos, lanes=lanes)
            runs.append(
                ExecutionRun(
                    side=side,
                    record_id=name,
                    rounds=sum(map(len, written)),
                    tokens=sum(map(len, written)),
                    seconds=time.perf_counter() - begun,
                )
            )
    return runs


def _packed(
    model: ParallelDecoder,
    tokenizer: StudentTokenizer,
    prompt: Sequence[int],
    plan: PlanSet,
    name: str,
    settings: GenerationSettings,
) -> ExecutionRun:
    answer = time_answer(model, prompt, settings, tokenizer=tokenizer, plans=plan)
    ledger = answer.ledger
    return ExecutionRun(
        side=PACKED,
        record_id=name,
        rounds=ledger.rounds,
        tokens=ledger.tokens,
        seconds=answer.seconds,
        prefill_seconds=ledger.seconds["prefill"],
        decode_seconds=ledger.seconds["decode"],
        barrier_seconds=ledger.seconds.get("barrier", 0.0),
        shared_cache_bytes=ledger.shared_cache_bytes,
        private_cache_bytes=ledger.private_cache_bytes,
        round_seconds=answer.round_seconds,
    )


def peak_memory() -> int:
    """The most this process has held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
