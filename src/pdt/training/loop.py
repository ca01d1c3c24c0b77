"""The training loop: accumulate, step, log, save; a killed run goes on to the same numbers.

Paper: §6, Table 2.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, TrainingStopped, UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch, RecordShards
from pdt.terms import CodebookStart
from pdt.training.assignment import assign_lanes, draw_assignment
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
from pdt.training.losses import compute_losses
from pdt.training.optimizer import build_optimizer, learning_rate_at, take_step

METRICS = "metrics.jsonl"
Metrics = dict[str, Any]


class Trainer:
    """One run in one directory, on one process."""

    def __init__(
        self,
        model: ParallelDecoder,
        shards: RecordShards,
        run: Path,
        progress: Progress | None = None,
    ) -> None:
        check_records(model.config, shards)
        self.model, self.run, self.config = model, run, model.config.training
        if progress is None and model.config.notes.codebook_start is CodebookStart.STATES:
            take_codes(model, shards, self.config.seed)
        self.progress = progress or Progress()
        self.optimizer = build_optimizer(model, self.config)
        self.stream = DocumentStream(
            shards, batch_documents=self.config.optimizer.batch_documents, seed=self.config.seed
        )
        self.borders = {stage.stop_step for stage in stages_of(self.config)}
        model.recompute = self.config.recompute
        run.mkdir(parents=True, exist_ok=True)

    @classmethod
    def resume(cls, shards: RecordShards, run: Path, config: PdtConfig) -> "Trainer":
        """Take up the newest whole checkpoint of the run."""
        remove_partial(run)
        directory = latest_checkpoint(run)
        if directory is None:
            raise UsageError(f"{run} holds no whole checkpoint.\nStart the run without --resume.")
        model, tensors, progress = load_checkpoint(directory, config)
        trainer = cls(model, shards, run, progress)
        restore_optimizer(model, trainer.optimizer, tensors)
        _forget_later_metrics(run / METRICS, progress.step)
        return trainer

    @property
    def steps(self) -> int:
        return self.config.scaled(self.config.steps)

    def train(
        self, until: int | None = None, *, watch: Callable[[Metrics], None] = lambda metrics: None
    ) -> None:
        """Run to step `until`, by default to the end of the curriculum, and save there."""
        batches = self.stream.batches(self.progress.position)
        end = self.steps if until is None else min(self.steps, until)
        while self.progress.step < end:
            started = time.perf_counter()
            metrics = self._step(batches)
            metrics["seconds"] = time.perf_counter() - started
            with (self.run / METRICS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(metrics) + "\n")
            watch(metrics)
            step = self.progress.step
            if step % self.config.save_steps == 0 or step in self.borders or step == end:
                self.save()

    def save(self) -> None:
        try:
            save_checkpoint(self.run, self.model, self.optimizer, self.progress)
            prune_checkpoints(self.run, self.model.config)
        except OSError as error:
            raise self._stopped(f"the checkpoint could not be written ({error})") from error

    def _step(self, batches: Iterator[RecordBatch]) -> Metrics:
        step, position = self.progress.step, self.progress.position
        stage = stage_at(self.config, step)
        apply_manifest(self.model, stage)
        sums: dict[str, float] = {}
        for _ in range(self.config.optimizer.accumulation):
            batch = next(batches)
            for name, value in self._accumulate(batch, position, stage).items():
                sums[name] = sums.get(name, 0.0) + value / self.config.optimizer.accumulation
            position += len(batch.record_ids)
        norm = take_step(self.model, self.optimizer, self.config, step).item()
        self.progress = Progress(step + 1, position)
        return {
            "step": step,
            "stage": stage.number,
            "documents": position,
            "learning_rate": learning_rate_at(self.config, step),
            "gradient_norm": norm,
            **sums,
        }

    def _accumulate(self, batch: RecordBatch, position: int, stage: Stage) -> dict[str, float]:
        places = range(position, position + len(batch.record_ids))
        lanes = self.model.config.lanes.count
        batch = assign_lanes(batch, draw_assignment(self.config.seed, places, lanes))
        computed = compute_losses(self.model, batch, stage.plan, stage.losses)
        total = total_loss(computed.parts, self.model.config.objective)
        if not torch.isfinite(total):
            parts = {loss.value: part.item() for loss, part in computed.parts.items()}
            raise self._stopped(f"the loss of {', '.join(batch.record_ids)} is {parts}")
        (total / self.config.optimizer.accumulation).backward()
        watched = {loss.value: part.item() for loss, part in computed.parts.items()}
        if computed.usage_deficit_M is not None:
            deficits = computed.usage_deficit_M.tolist()
            watched |= {f"usage_deficit_{m}": value for m, value in enumerate(deficits)}
        return {"loss": total.item(), **watched}

    def _stopped(self, reason: str) -> TrainingStopped:
        last = latest_checkpoint(self.run)
        return TrainingStopped(
            f"Training stopped at step {self.progress.step}: {reason}.\n"
            + (f"The last good checkpoint is {last}." if last else "There is no checkpoint yet.")
        )


def check_records(config: PdtConfig, shards: RecordShards) -> None:
    """Refuse records whose labels were cut for another model, before the first step."""
    of = shards.config
    rows = [
        ("lanes.count", of.lanes.count, config.lanes.count),
        ("lanes.block_tokens", of.lanes.block_tokens, config.lanes.block_tokens),
        ("planner.nodes", of.planner.nodes, config.planner.nodes),
        ("planner.width", of.planner.width, config.planner.width),
        ("heads.fact_width", of.heads.fact_width, config.heads.fact_width),
    ]
    wrong = [row for row in rows if row[1] != row[2]]
    if wrong:
        raise BindingMismatch(
            f"{shards.directory} was compiled for another model.",
            wrong,
            "Compile the documents again with this configuration.",
            sides=("records", "model"),
        )


def _forget_later_metrics(path: Path, step: int) -> None:
    """Lines of steps that the run will take again."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = []
    for line in lines:
        try:
            if json.loads(line)["step"] < step:
                kept.append(line)
        except json.JSONDecodeError:  # the line a killed run was writing
            continue
    path.write_text("".join(kept), encoding="utf-8")
