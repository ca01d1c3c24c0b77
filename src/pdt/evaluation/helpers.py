"""Share the batches of an evaluation out among processes.

Batches are independent. Helpers measure theirs into the parts that the evaluation reads; what a
helper leaves undone, the evaluation measures itself.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from pdt.evaluation.conditions import Weights
from pdt.evaluation.parts import Parts
from pdt.evaluation.results import EvaluationSettings
from pdt.evaluation.run import Evaluation, load_for_evaluation
from pdt.records.batch import RecordShards
from pdt.terms import NotesCondition, Split


@dataclass(frozen=True)
class Inputs:
    """All that a helper opens for itself."""

    records: Path
    split: Split
    models: Mapping[Weights, Path]
    settings: EvaluationSettings
    parts: Path


@contextmanager
def helped(inputs: Inputs, workers: int) -> Iterator[Callable[[], None]]:
    """Start all workers but this one; yields what waits for them. The cores are shared out."""
    threads = torch.get_num_threads()
    each = max(1, threads // workers)
    spawn = multiprocessing.get_context("spawn")
    others = [
        spawn.Process(target=_help, args=(inputs, number, workers, each), daemon=True)
        for number in range(1, workers)
    ]
    for other in others:
        other.start()

    def wait() -> None:
        for other in others:
            other.join()
        torch.set_num_threads(threads)  # what follows is timed

    torch.set_num_threads(each)
    try:
        yield wait
    finally:
        torch.set_num_threads(threads)
        for other in others:
            other.terminate()
            other.join()


def _help(inputs: Inputs, number: int, workers: int, threads: int) -> None:
    torch.set_num_threads(threads)
    models = {
        weights: load_for_evaluation(path, NotesCondition(weights.value))[0]
        for weights, path in inputs.models.items()
    }
    shards = RecordShards(inputs.records, split=inputs.split)
    parts = Parts(inputs.parts)
    evaluation = Evaluation(shards, models, inputs.settings, {}, parts=parts, progress=_orphaned)
    evaluation.share(*evaluation.batches(), number=number, workers=workers)


def _orphaned(label: str, documents: int) -> None:
    """A helper whose evaluation was killed ends: the next one measures the same parts."""
    parent = multiprocessing.parent_process()
    if parent is None or not parent.is_alive():
        raise SystemExit(1)
