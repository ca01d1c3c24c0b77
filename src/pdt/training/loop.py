"""The training loop: accumulate, step, log, save; a killed run goes on to the same numbers.

Paper: §6, Table 2.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pdt.config import PdtConfig
from pdt.errors import TrainingStopped, UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordBatch, RecordShards
from pdt.terms import CodebookStart, Component
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.binding import bind_run
from pdt.training.checkpoint import (
    Progress,
    latest_checkpoint,
    load_checkpoint,
    other_products,
    prune_checkpoints,
    save_checkpoint,
)
from pdt.training.codebooks import take_codes
from pdt.training.curriculum import Stage, apply_manifest, stage_at, stages_of
from pdt.training.documents import DocumentStream
from pdt.training.engine import Engine
from pdt.training.held_out import HeldOut
from pdt.training.optimizer import (
    build_optimizer,
    learned_parameters,
    learning_rate_at,
    take_step,
)
from pdt.training.preflight import check_run
from pdt.training.ranks import Ranks
from pdt.training.recompute import recompute_activations
from pdt.training.saved_step import remove_partial, restore_moments
from pdt.training.watch.metrics import STEP, Metrics, Watch, append_metrics, forget_later_metrics
from pdt.training.watch.tally import Tally, gate_values


class Trainer:
    """One run in one directory, on one process or on many."""

    def __init__(
        self,
        model: ParallelDecoder,
        shards: RecordShards,
        run: Path,
        progress: Progress | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        ranks: Ranks | None = None,
        telling: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`inputs` is what else the run's manifest names: where the model came from.

        `telling` hears what is done before the first step, which may take minutes.
        """
        self.model, self.run, self.config = model, run, model.config.training
        self.progress, self.ranks = progress or Progress(), ranks or Ranks()
        with self.ranks.together():
            check_run(model, shards, run, self.ranks.count)
            writes = any(Component.NOTE_WRITER in stage.trains for stage in stages_of(self.config))
            start = model.config.notes.codebook_start
            if progress is None and writes and start is CodebookStart.STATES:
                take_codes(model, shards, self.config.seed, telling=telling)
            how = self.config.optimizer
            self.stream = DocumentStream(
                shards,
                batch_documents=how.batch_documents,
                seed=self.config.seed,
                alike=how.alike_batches,
            )
            self.held_out = HeldOut(shards, self.config)
            if self.ranks.first:
                run.mkdir(parents=True, exist_ok=True)
                bind_run(run, model, shards, inputs, anew=progress is None)
                if progress is None:  # a run that was killed before its first checkpoint
                    forget_later_metrics(run, 0)
            telling("the optimizer")
        self.borders = {stage.stop_step for stage in stages_of(self.config)}
        recompute_activations(model, self.config.recompute)
        self.engine = Engine(model, self.ranks)
        self.remark: str | None = None
        """What whoever resumes a run should hear before it goes on."""
        self.optimizer = build_optimizer(model, self.config)

    @classmethod
    def resume(
        cls, shards: RecordShards, run: Path, config: PdtConfig, *, ranks: Ranks | None = None
    ) -> "Trainer":
        """Take up the newest whole checkpoint of the run, on any number of ranks."""
        ranks = ranks or Ranks()
        found = ""
        with ranks.together():
            if ranks.first:
                remove_partial(run)
                found = str(_newest(run))
        directory = Path(ranks.broadcast(found))
        with ranks.together():
            model, progress = load_checkpoint(directory, config)
        trainer = cls(model, shards, run, progress, ranks=ranks)
        trainer.remark = other_products(directory, trainer.engine)
        with ranks.together():
            restore_moments(learned_parameters(model), trainer.optimizer, directory)
            if ranks.first:
                forget_later_metrics(run, progress.step)
        return trainer

    @property
    def steps(self) -> int:
        return self.config.scaled(self.config.steps)

    def train(self, until: int | None = None, *, watch: Watch = lambda metrics: None) -> None:
        """Run to step `until`, by default to the end of the curriculum, and save there."""
        ranks = self.ranks
        batches = self.stream.batches(self.progress.position, rank=ranks.rank, ranks=ranks.count)
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
            save_checkpoint(self.run, self.engine, self.optimizer, self.progress)
            with self.ranks.together():
                if self.ranks.first:
                    prune_checkpoints(self.run, self.model.config)
        except OSError as error:
            raise self._stopped(f"the checkpoint could not be written ({error})") from error

    def _log(self, metrics: Metrics, watch: Watch) -> None:
        try:
            with self.ranks.together():
                if self.ranks.first:
                    append_metrics(self.run, metrics)
        except OSError as error:
            raise self._stopped(f"the metrics could not be written ({error})") from error
        if self.ranks.first:
            watch(metrics)

    def _evaluate(self, watch: Watch) -> None:
        """Measure the stage that ends here; before the save, so that no checkpoint lacks it."""
        if self.held_out.documents:
            last = self.progress.step - 1
            measured = self.held_out.evaluate(self.engine, stage_at(self.config, last))
            self._log({**measured, "step": last}, watch)

    def _step(self, batches: Iterator[tuple[int, RecordBatch]]) -> Metrics:
        step, size = self.progress.step, self.config.optimizer
        stage = stage_at(self.config, step)
        apply_manifest(self.model, stage)
        tally, trouble = Tally(), ""
        turns = size.accumulation // self.ranks.count
        for turn in range(turns):
            place, batch = next(batches)
            last = turn + 1 == turns
            trouble = self._accumulate(batch, place, stage, tally, last=last) or trouble
        norm = self.engine.gradient_norm().item()
        self._stop_all_on(trouble, norm)
        take_step(self.model, self.optimizer, self.config, step, norm)
        position = self.progress.position + size.batch_documents * size.accumulation
        self.progress = Progress(step + 1, position)
        tally = tally.of_all(self.ranks, self.model.config)
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
            **(self.engine.trunk.cache.metrics() if self.engine.trunk.cache else {}),
        }

    def _accumulate(
        self, batch: RecordBatch, position: int, stage: Stage, tally: Tally, *, last: bool
    ) -> str:
        """Add a batch to gradients and tally; returns what is wrong with its loss."""
        places = range(position, position + len(batch.record_ids))
        lanes = self.model.config.lanes.count
        batch = assign_lanes(batch, draw_assignment(self.config.seed, places, lanes))
        total, computed = self.engine.losses(batch, stage.plan, stage.losses)
        # FSDP takes the mean over ranks, and each has its share of the step's batches.
        share = self.ranks.count / self.config.optimizer.accumulation
        self.engine.backward(total * share, last=last)
        tally.add(batch, computed, total)
        if math.isfinite(total.item()):
            return ""
        parts = {loss.value: part.item() for loss, part in computed.parts.items()}
        return f"the loss of {', '.join(batch.record_ids)} is {parts}"

    def _stop_all_on(self, trouble: str, norm: float) -> None:
        """Before the step is taken: a loss of one rank, or the gradient of all, is no number."""
        with self.ranks.together():
            if trouble:
                raise self._stopped(trouble)
        if not math.isfinite(norm):
            with self.ranks.together():
                raise self._stopped(f"the norm of the gradient is {norm}")

    def _stopped(self, reason: str) -> TrainingStopped:
        last = latest_checkpoint(self.run)
        return TrainingStopped(
            f"Training stopped at step {self.progress.step}: {reason}.\n"
            + (f"The last good checkpoint is {last}." if last else "There is no checkpoint yet.")
        )


def _newest(run: Path) -> Path:
    directory = latest_checkpoint(run)
    if directory is None:
        raise UsageError(
            f"{run} holds no whole checkpoint.\n"
            "Remove what is there, and start the run without --resume."
        )
    return directory
