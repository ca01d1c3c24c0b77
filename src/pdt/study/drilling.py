"""Train lanes, readers and writer on drill documents until the bus carries words.

Coined words stand next to their barrier at first and move away from it as steps go on. A killed
drill goes on from its last state to the same weights.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from pdt.config import TrainingConfig
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.trunk import tensors_digest
from pdt.notes.visibility import visibility_table
from pdt.objective.token import token_loss
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch, RecordShards
from pdt.study.drill import REQUEST, ROUNDS, Drill, DrillBatch
from pdt.study.state import restore_state, save_state
from pdt.terms import Component, Loss, NotesCondition, PlanCondition
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.codebooks import codes_from
from pdt.training.curriculum import Stage, apply_manifest
from pdt.training.documents import DocumentStream
from pdt.training.losses import compute_losses, note_losses, read_out
from pdt.training.optimizer import build_optimizer, learned_parameters, take_step
from pdt.training.rollout import Rollout, roll_out

TRAINED = frozenset({Component.LANES, Component.SNC, Component.NOTE_WRITER})
BESIDE = TRAINED | {Component.PLAN_KV, Component.HEADS}
"""Where documents of the corpus stand beside the drill's: lanes keep reading their plans."""


@dataclass(frozen=True)
class Drilling:
    """How long, and how far from the barrier at which part of it."""

    steps: int = 300
    distances: tuple[int, ...] = (1, 4, 12, 27)
    """Of equal parts of the steps."""
    read_out: float = 2.0
    """What the read-out counts: here it leads, in the curriculum it only keeps what is there."""
    seed: int = 0
    save_steps: int = 50
    held_out: int = 32
    """Documents that the bus is measured on."""
    beside_documents: int = 4
    """Of the corpus, in every step, where there is one beside."""

    def distance_at(self, step: int) -> int:
        return self.distances[step * len(self.distances) // self.steps]


class DrillRun:
    """One model in its drill."""

    def __init__(
        self,
        model: ParallelDecoder,
        drill: Drill,
        how: Drilling,
        beside: RecordShards | None = None,
    ) -> None:
        self.model, self.drill, self.how = model, drill, how
        self.beside = None if beside is None else self._stream(beside)
        trained = TRAINED if beside is None else BESIDE
        self.stage = Stage(0, 0, how.steps, PlanCondition.ORACLE, trained)
        self.config = _long_cosine(model.config.training, how.steps)
        self.request = torch.tensor([list(drill.tokenizer.encode(REQUEST).ids)])
        apply_manifest(model, self.stage)
        self.optimizer = build_optimizer(model, self.config)
        self._bound = self._belongs_to()

    def run(
        self, work: Path, watch: Callable[[int, dict[str, float]], None] = lambda step, said: None
    ) -> None:
        """Every step that is left; `work` keeps the state."""
        weights = dict(learned_parameters(self.model))
        first = restore_state(work, weights, self.optimizer, self._bound)
        if first == 0:
            self._take_codes()
        size = self.how.beside_documents
        batches = None if self.beside is None else self.beside.batches(first * size)
        for step in range(first, self.how.steps):
            watch(step + 1, self._step(step, batches))
            if (step + 1) % self.how.save_steps == 0 or step + 1 == self.how.steps:
                save_state(work, weights, self.optimizer, step + 1, self._bound)

    @torch.no_grad()
    def recalled(self, condition: NotesCondition) -> float:
        """NLL of recalled words in fresh documents of the last distance."""
        batch = self._drawn("held out", self.how.held_out, self.how.distances[-1])
        return self.roll_out(batch, condition).scores_BKT[batch.dependency_token_BKT].mean().item()

    def roll_out(self, batch: DrillBatch, condition: NotesCondition | None = None) -> Rollout:
        """Teacher-forced, with plans that say nothing."""
        model = self.model
        lanes, nodes = model.config.lanes.count, model.config.planner.nodes
        size = len(batch.section_tokens_BKT)
        plans = PlanSet(
            torch.zeros(size, lanes, nodes, model.config.planner.width),
            torch.ones(size, lanes, nodes, dtype=torch.bool),
            torch.zeros(size, lanes),
        )
        frontier = model.open_lanes(model.read_prompt(self.request.expand(size, -1)), plans)
        table = visibility_table(condition or model.config.notes.condition, lanes)
        return roll_out(model, frontier, batch.section_tokens_BKT, may_read_KK=table)

    def _belongs_to(self) -> dict[str, object]:
        """What a state of this drill belongs to; the model as it starts is of it."""
        config = self.model.config.model_dump_json()
        return {
            "start": tensors_digest(sorted(self.model.state_dict().items())),
            "drilling": asdict(self.how),
            "sentences": self.drill.digest,
            "beside": None if self.beside is None else self.beside.shards.digest,
            "config": hashlib.sha256(config.encode()).hexdigest(),
        }

    def _stream(self, records: RecordShards) -> DocumentStream:
        size = self.how.beside_documents
        return DocumentStream(records, batch_documents=size, seed=self.how.seed)

    def _add(self, batch: RecordBatch, position: int) -> float:
        """The gradient of documents of the corpus; returns their loss."""
        places = range(position, position + len(batch.record_ids))
        lanes = self.model.config.lanes.count
        batch = assign_lanes(batch, draw_assignment(self.how.seed, places, lanes))
        computed = compute_losses(self.model, batch, self.stage.plan, self.stage.losses)
        loss = total_loss(computed.parts, self.model.config.objective)
        loss.backward()
        return loss.item()

    def _step(
        self, step: int, beside: Iterator[tuple[int, RecordBatch]] | None
    ) -> dict[str, float]:
        size = self.config.optimizer.batch_documents * self.config.optimizer.accumulation
        batch = self._drawn(step, size, self.how.distance_at(step))
        rollout = self.roll_out(batch)
        dependency = batch.dependency_token_BKT
        weight = self.model.config.objective.dependency_token
        scores = rollout.scores_BKT
        parts = {
            **note_losses(self.model, rollout.bus).parts,
            Loss.TOKEN: token_loss(scores, torch.ones_like(dependency), (dependency, weight)),
            Loss.READ_OUT: read_out(self.model, rollout.bus, batch.edges),
        }
        objective = self.model.config.objective.model_copy(update={"read_out": self.how.read_out})
        total_loss(parts, objective).backward()
        kept = {}
        if beside is not None:
            position, documents = next(beside)
            kept["beside"] = self._add(documents, position)
        gradients = [p.grad for _, p in learned_parameters(self.model) if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).item()
        take_step(self.model, self.optimizer, self.config, step, norm)
        return {
            "recalled words": scores[dependency].mean().item(),
            "read-out": parts[Loss.READ_OUT].item(),
            **kept,
        }

    @torch.no_grad()
    def _take_codes(self) -> None:
        """Codes from what the untrained writer writes, as `notes.codebook_start: states` does."""
        notes_per_document = 2 * ROUNDS * self.model.config.lanes.count
        size = 2 * self.model.config.notes.codes // notes_per_document + 1
        batch = self._drawn("codes", size, self.how.distances[0])
        written = [note.written_BKE for note in self.roll_out(batch).bus.blocks]
        vectors = torch.cat([w.flatten(0, 1) for w in written if w is not None])
        codes_from(self.model, vectors, self.how.seed)

    def _drawn(self, what: object, size: int, distance: int) -> DrillBatch:
        stream = random.Random(f"drill {self.how.seed} {what}")
        return self.drill.batch(stream, size, distance=distance)


def _long_cosine(config: TrainingConfig, steps: int) -> TrainingConfig:
    """The run's own optimizer, with a cosine that has hardly begun when the drill ends."""
    stage = config.stages[0].model_copy(update={"learning_rate": None})
    return config.model_copy(update={"steps": 4 * steps, "scale": 1.0, "stages": (stage,)})
