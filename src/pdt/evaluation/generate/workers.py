"""Share the batches of an evaluation out among processes.

Batches are independent: workers measure those that are missing into the parts that the evaluation
reads. They share its threads too, so a likelihood may differ in the last bits of a sum.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from pdt.evaluation.generate.open import Asked, open_runs
from pdt.evaluation.generate.parts import Parts
from pdt.evaluation.generate.runs import Runs
from pdt.jobs import run_jobs


def measure_parts(runs: Runs, asked: Asked, *, workers: int) -> None:
    """Measure what no part holds yet; a killed one goes on after its last whole batches."""
    assert runs.parts is not None
    threads = max(1, torch.get_num_threads() // workers)
    label, missing = f"{workers} workers", runs.missing()
    numbers = list(missing)
    runs.watch(label, 0)
    measured = run_jobs(
        partial(_measurer, asked, runs.parts.directory, threads),
        numbers,
        workers=workers,
        doing="measured a batch",
        remedy="Every whole batch is kept. Run the same command again with fewer --workers.",
        progress=lambda job, _: runs.watch(label, missing[numbers[job]].runs),
    )
    for _ in measured:
        pass


def _measurer(asked: Asked, parts: Path, threads: int) -> Callable[[int], None]:
    torch.set_num_threads(threads)
    runs, _ = open_runs(asked)
    runs.parts = Parts(parts)

    def measure(number: int) -> None:
        runs.measure(number)

    return measure
