"""The training loop: accumulate, step, log, save; a killed run goes on to the same numbers.

Paper: §6, Table 2.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from pdt.config import PdtConfig
from pdt.errors import TrainingStopped, UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch, RecordShards
from pdt.terms import CodebookStart
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.binding import bind_run
from pdt.training.checkpoint import (
    Progress,
    latest_checkpoint,
    load_checkpoint,
    prune_checkpoints,
    remove_partial,
    restore_optimizer,
    save_checkpoint,
)
from pdt.training.codebooks import take_codes
from pdt.training.curriculum import Stage, apply_manifest, stage_at, stages_of
from pdt.training.documents import DocumentStream
from pdt.training.held_out import HeldOut
from pdt.training.losses import compute_losses
from pdt.training.metrics import STEP, Metrics, append_metrics, forget_later_metrics
from pdt.training.optimizer import build_optimizer, learning_rate_at, take_step
from pdt.training.preflight import check_run
from pdt.training.tally import Tally, gate_values

Watch = Callable[[Metrics], None]
"""Is handed every line of metrics as it is written."""


class Trainer:
    """One run in one directory, on one process."""

    def __init__(
        self,
        model: ParallelDecoder,
        shards: RecordShards,
        run: Path,
        progress: Progress | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """`inputs` is what else the run's manifest names: where the model came from."""
        check_run(model, shards, run)
        self.model, self.run, self.config = model, run, model.config.training
        if progress is None and model.config.notes.codebook_start is CodebookStart.STATES:
            take_codes(model, shards, self.config.seed)
        self.progress = progress or Progress()
        self.optimizer = build_optimizer(model, self.config)
        self.stream = DocumentStream(
            shards, batch_documents=self.config.optimizer.batch_documents, seed=self.config.seed
        )
        self.held_out = HeldOut(shards, self.config)
        self.borders = {stage.stop_step for stage in stages_of(self.config)}
        model.recompute = self.config.recompute
        run.mkdir(parents=True, exist_ok=True)
        bind_run(run, model, shards, inputs)

    @classmethod
    def resume(cls, shards: RecordShards, run: Path, config: PdtConfig) -> "Trainer":
        """Take up the newest whole checkpoint of the run."""
        remove_partial(run)
        directory = latest_checkpoint(run)
        if directory is None:
            raise UsageError(
                f"{run} holds no whole checkpoint.\n"
                "Remove what is there, and start the run without --resume."
            )
        model, tensors, progress = load_checkpoint(directory, config)
        trainer = cls(model, shards, run, progress)
        restore_optimizer(model, trainer.optimizer, tensors)
        forget_later_metrics(run, progress.step)
        return trainer

    @property
    def steps(self) -> int:
        return self.config.scaled(self.config.steps)

    def train(self, until: int | None = None, *, watch: Watch = lambda metrics: None) -> None:
        """Run to step `until`, by default to the end of the curriculum, and save there."""
        batches = self.stream.batches(self.progress.position)
        end = self.steps if until is None else min(self.steps, until)
        while self.progress.step < end:
            started = time.perf_counter()
            metrics = self._step(batches)
            metrics["seconds"] = time.perf_counter() - started
            self._log(metrics, watch)
            step = self.progress.step
            if step in self.borders:
                self._evaluate(watch)
            if step % self.config.save_steps == 0 or step in self.borders or step == end:
                self.save()

    def save(self) -> None:
        try:
            save_checkpoint(self.run, self.model, self.optimizer, self.progress)
            prune_checkpoints(self.run, self.model.config)
        except OSError as error:
            raise self._stopped(f"the checkpoint could not be written ({error})") from error

    def _log(self, metrics: Metrics, watch: Watch) -> None:
        try:
            append_metrics(self.run, metrics)
        except OSError as error:
            raise self._stopped(f"the metrics could not be written ({error})") from error
        watch(metrics)

    def _evaluate(self, watch: Watch) -> None:
        """Measure the stage that ends here; before the save, so that no checkpoint lacks it."""
        if self.held_out.documents:
            last = self.progress.step - 1
            measured = self.held_out.evaluate(self.model, stage_at(self.config, last))
            self._log({**measured, "step": last}, watch)

    def _step(self, batches: Iterator[RecordBatch]) -> Metrics:
        step, position = self.progress.step, self.progress.position
        stage = stage_at(self.config, step)
        apply_manifest(self.model, stage)
        tally = Tally()
        for _ in range(self.config.optimizer.accumulation):
            batch = next(batches)
            self._accumulate(batch, position, stage, tally)
            position += len(batch.record_ids)
        norm = take_step(self.model, self.optimizer, self.config, step).item()
        self.progress = Progress(step + 1, position)
        return {
            "kind": STEP,
            "step": step,
            "stage": stage.number,
            "documents": position,
            "step_documents": tally.documents,
            "learning_rate": learning_rate_at(self.config, step),
            "gradient_norm": norm,
            **tally.numbers(),
            **gate_values(self.model),
        }

    def _accumulate(self, batch: RecordBatch, position: int, stage: Stage, tally: Tally) -> None:
        places = range(position, position + len(batch.record_ids))
        lanes = self.model.config.lanes.count
        batch = assign_lanes(batch, draw_assignment(self.config.seed, places, lanes))
        computed = compute_losses(self.model, batch, stage.plan, stage.losses)
        total = total_loss(computed.parts, self.model.config.objective)
        if not torch.isfinite(total):
            parts = {loss.value: part.item() for loss, part in computed.parts.items()}
            raise self._stopped(f"the loss of {', '.join(batch.record_ids)} is {parts}")
        (total / self.config.optimizer.accumulation).backward()
        tally.add(batch, computed, total)

    def _stopped(self, reason: str) -> TrainingStopped:
        last = latest_checkpoint(self.run)
        return TrainingStopped(
            f"Training stopped at step {self.progress.step}: {reason}.\n"
            + (f"The last good checkpoint is {last}." if last else "There is no checkpoint yet.")
        )
