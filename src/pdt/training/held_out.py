"""What a stage border measures: every loss on held-out documents, teacher-forced, with no gradient.

The plans are those of the stage that ends, so its number is that of what it trained. All losses
are there at every border, whatever the stage counts, so that borders can be compared. Documents,
their order and their lanes are functions of the seed; no random stream is touched, and a run that
was interrupted measures what an uninterrupted one does.

Paper: §6, Table 2.
"""

import time
from itertools import islice

import torch

from pdt.config import TrainingConfig
from pdt.records.batch import RecordShards
from pdt.terms import Loss, Split
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.curriculum import Stage
from pdt.training.engine import Engine
from pdt.training.watch.metrics import EVALUATION, Metrics
from pdt.training.watch.tally import Tally


class HeldOut:
    """The first validation documents of a corpus, as many as the configuration asks for."""

    def __init__(self, shards: RecordShards, config: TrainingConfig) -> None:
        self.shards, self.config = shards.of_split(Split.VALIDATION), config
        self.available = len(self.shards)
        self.documents = min(self.available, config.watch.evaluate_documents)

    @property
    def missing(self) -> str | None:
        """Why nothing will be measured, when the configuration asked for it."""
        if self.available or not self.config.watch.evaluate_documents:
            return None
        return (
            f"{self.shards.directory} holds no validation documents: nothing is measured at stage "
            "borders. Compile some beside the training documents (`pdt chronicle write --split "
            "validation`), or set training.watch.evaluate_documents=0."
        )

    def evaluate(self, engine: Engine, stage: Stage) -> Metrics:
        """The means over the documents, as a line of metrics; every rank measures the same."""
        started = time.perf_counter()
        tally, lanes = Tally(), engine.model.config.lanes.count
        batches = self.shards.batches(1)
        with torch.no_grad():
            for place, batch in enumerate(islice(batches, self.documents)):
                batch = assign_lanes(batch, draw_assignment(self.config.seed, [place], lanes))
                total, computed = engine.losses(batch, stage.plan, tuple(Loss))
                tally.add(batch, computed, total)
        engine.rest()
        return {
            "kind": EVALUATION,
            "stage": stage.number,
            "plan_source": stage.plan.value,
            "documents": tally.documents,
            **tally.numbers(),
            "seconds": time.perf_counter() - started,
        }
