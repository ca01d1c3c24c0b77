"""Share the batches of an evaluation out among processes.

Batches are independent: workers measure those that are missing into the parts that the evaluation
reads. They share its threads too, so a likelihood may differ in the last bits of a sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from pdt.evaluation.generate.batches import HeldOutBatch
from pdt.evaluation.generate.checkpoints import load_for_evaluation
from pdt.evaluation.generate.parts import Parts
from pdt.evaluation.generate.run import Evaluation
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.jobs import run_jobs
from pdt.records.batch import RecordShards
from pdt.terms import NotesCondition, Split

Batches = tuple[list[HeldOutBatch], list[HeldOutBatch]]


@dataclass(frozen=True)
class Opened:
    """What every worker opens for itself."""

    records: Path
    split: Split
    models: Mapping[Weights, Path]
    settings: EvaluationSettings
    parts: Path


def measure_parts(
    evaluation: Evaluation, batches: Batches, opened: Opened, *, workers: int
) -> None:
    """Measure what no part holds yet; a killed one goes on after its last whole batches."""
    threads = max(1, torch.get_num_threads() // workers)
    label, missing = f"{workers} workers", evaluation.missing(*batches)
    numbers = list(missing)
    evaluation.progress(label, 0)
    measured = run_jobs(
        partial(_measurer, opened, threads),
        numbers,
        workers=workers,
        doing="measured a batch",
        remedy="Every whole batch is kept. Run the same command again with fewer --workers.",
        progress=lambda job, _: evaluation.progress(label, missing[numbers[job]]),
    )
    for _ in measured:
        pass


def _measurer(opened: Opened, threads: int) -> Callable[[int], None]:
    torch.set_num_threads(threads)
    models = {
        weights: load_for_evaluation(path, NotesCondition(weights.value))[0]
        for weights, path in opened.models.items()
    }
    shards = RecordShards(opened.records, split=opened.split)
    evaluation = Evaluation(shards, models, opened.settings, {}, parts=Parts(opened.parts))
    batches = evaluation.batches()
    return lambda number: evaluation.measure(number, *batches)
