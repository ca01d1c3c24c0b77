"""Share the batches of an evaluation out among processes.

Batches are independent: workers measure those that are missing into the parts that the evaluation
reads. They share its threads too, so a likelihood may differ in the last bits of a sum.
"""

import signal
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from pdt.errors import PdtError
from pdt.evaluation.conditions import Weights
from pdt.evaluation.held_out import HeldOutBatch
from pdt.evaluation.parts import Parts
from pdt.evaluation.results import EvaluationSettings
from pdt.evaluation.run import Evaluation, load_for_evaluation
from pdt.records.batch import RecordShards
from pdt.records.work import end_with_parent, refusal
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


_worker: tuple[Evaluation, Batches] | None = None
"""The evaluation of this worker process, and its batches."""
_refused: tuple[type[PdtError], str] | None = None
"""Why this process has none; an error in an initializer would break the pool without its words."""


def measure_parts(
    evaluation: Evaluation, batches: Batches, opened: Opened, *, workers: int
) -> None:
    """Measure what no part holds yet; a killed one goes on after its last whole batches."""
    threads = max(1, torch.get_num_threads() // workers)
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_start, initargs=(opened, threads)
    )
    label = f"{workers} workers"
    evaluation.progress(label, 0)
    try:
        runs = {pool.submit(_measure, n): runs for n, runs in evaluation.missing(*batches).items()}
        for measured in as_completed(runs):
            refused = measured.result()
            if refused is not None:
                raise refusal(*refused)
            evaluation.progress(label, runs[measured])
    except BrokenProcessPool:
        raise PdtError(
            "A worker died while it measured a batch; perhaps memory ran out.\n"
            "Every whole batch is kept. Run the same command again with fewer --workers."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(opened: Opened, threads: int) -> None:
    global _worker, _refused
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent speaks for all
    torch.set_num_threads(threads)
    try:
        _worker = _open(opened)
    except PdtError as error:
        _refused = type(error), str(error)


def _open(opened: Opened) -> tuple[Evaluation, Batches]:
    models = {
        weights: load_for_evaluation(path, NotesCondition(weights.value))[0]
        for weights, path in opened.models.items()
    }
    shards = RecordShards(opened.records, split=opened.split)
    evaluation = Evaluation(shards, models, opened.settings, {}, parts=Parts(opened.parts))
    return evaluation, evaluation.batches()


def _measure(number: int) -> tuple[type[PdtError], str] | None:
    """A refusal comes back as values: not every error survives being pickled."""
    if _refused is not None:
        return _refused
    assert _worker is not None
    evaluation, batches = _worker
    try:
        evaluation.measure(number, *batches)
    except PdtError as error:
        return type(error), str(error)
    return None
