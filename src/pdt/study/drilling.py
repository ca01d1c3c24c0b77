"""Train lanes, readers and writer on drill documents until the bus carries words.

Coined words stand next to their barrier at first and move away from it as steps go on. A killed
drill goes on from its last state to the same weights.

    OUT/drill.safetensors     where a killed drill goes on
    OUT/model/                the drilled model, written at the end
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from pdt.config import TrainingConfig
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.visibility import visibility_table
from pdt.objective.token import token_loss
from pdt.objective.total import total_loss
from pdt.study.drill import REQUEST, Drill, DrillBatch
from pdt.study.state import restore_state, save_state
from pdt.terms import Component, Loss, NotesCondition, PlanCondition
from pdt.training.codebooks import codes_from
from pdt.training.curriculum import Stage, apply_manifest
from pdt.training.losses import Computed, note_losses, read_out
from pdt.training.optimizer import build_optimizer, learned_parameters, take_step
from pdt.training.rollout import Rollout, roll_out

STATE = "drill.safetensors"
NOTE_LOSSES = frozenset({Loss.NOTE, Loss.COMMITMENT, Loss.CODEBOOK, Loss.USAGE})
TRAINED = frozenset({Component.LANES, Component.SNC, Component.NOTE_WRITER})


@dataclass(frozen=True)
class Drilling:
    """How long, and how far from the barrier at which part of it."""

    steps: int = 300
    distances: tuple[int, ...] = (1, 4, 12, 27)
    """Of equal parts of the steps."""
    seed: int = 0
    save_steps: int = 50
    held_out: int = 32
    """Documents that the bus is measured on."""

    def distance_at(self, step: int) -> int:
        return self.distances[step * len(self.distances) // self.steps]


class DrillRun:
    """One model in its drill."""

    def __init__(self, model: ParallelDecoder, drill: Drill, how: Drilling) -> None:
        self.model, self.drill, self.how = model, drill, how
        self.config = _constant_rate(model.config.training, how.steps)
        self.request = torch.tensor([list(drill.tokenizer.encode(REQUEST).ids)])
        apply_manifest(model, Stage(0, 0, how.steps, PlanCondition.ORACLE, TRAINED))
        self.optimizer = build_optimizer(model, self.config)

    def run(
        self, work: Path, watch: Callable[[int, dict[str, float]], None] = lambda s, n: None
    ) -> None:
        """Every step that is left; `work` keeps the state."""
        parameters = dict(learned_parameters(self.model))
        first = restore_state(work / STATE, parameters, self.optimizer)
        if first == 0:
            self._take_codes()
        for step in range(first, self.how.steps):
            watch(step + 1, self._step(step))
            if (step + 1) % self.how.save_steps == 0 or step + 1 == self.how.steps:
                save_state(work / STATE, parameters, self.optimizer, step + 1)

    def _step(self, step: int) -> dict[str, float]:
        stream = random.Random(f"{self.how.seed} {step}")
        size = self.config.optimizer.batch_documents * self.config.optimizer.accumulation
        batch = self.drill.batch(stream, size, distance=self.how.distance_at(step))
        rollout = self.roll_out(batch)
        parts = self._losses(batch, rollout)
        total_loss(parts, self.model.config.objective).backward()
        gradients = [p.grad for _, p in learned_parameters(self.model) if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients).item()
        take_step(self.model, self.optimizer, self.config, step, norm)
        word = rollout.scores_BKT[batch.dependency_token_BKT].mean().item()
        return {"word": word, "read_out": parts[Loss.READ_OUT].item()}

    def roll_out(self, batch: DrillBatch, condition: NotesCondition | None = None) -> Rollout:
        """Teacher-forced, with plans that say nothing."""
        model = self.model
        lanes, planner = model.config.lanes.count, model.config.planner
        size = len(batch.section_tokens_BKT)
        plans = PlanSet(
            torch.zeros(size, lanes, planner.nodes, planner.width),
            torch.ones(size, lanes, planner.nodes, dtype=torch.bool),
            torch.zeros(size, lanes),
        )
        frontier = model.open_lanes(model.read_prompt(self.request.expand(size, -1)), plans)
        table = visibility_table(condition or model.config.notes.condition, lanes)
        return roll_out(model, frontier, batch.section_tokens_BKT, may_read_KK=table)

    @torch.no_grad()
    def words(self, condition: NotesCondition) -> float:
        """NLL of recalled words in fresh documents of the last distance."""
        stream = random.Random(f"{self.how.seed} held out")
        batch = self.drill.batch(stream, self.how.held_out, distance=self.how.distances[-1])
        return self.roll_out(batch, condition).scores_BKT[batch.dependency_token_BKT].mean().item()

    def _losses(self, batch: DrillBatch, rollout: Rollout) -> dict[Loss, torch.Tensor]:
        computed = Computed()
        note_losses(self.model, rollout.bus, NOTE_LOSSES, computed)
        every = torch.ones_like(batch.dependency_token_BKT)
        weight = self.model.config.objective.dependency_token
        return {
            **computed.parts,
            Loss.TOKEN: token_loss(rollout.scores_BKT, every, batch.dependency_token_BKT, weight),
            Loss.READ_OUT: read_out(self.model, rollout.bus, batch.edges),
        }

    @torch.no_grad()
    def _take_codes(self) -> None:
        """Codes from what the untrained writer writes, as `notes.codebook_start: states` does."""
        stream = random.Random(f"{self.how.seed} codes")
        size = 2 * self.model.config.notes.codes // (4 * self.model.config.lanes.count) + 1
        batch = self.drill.batch(stream, size, distance=self.how.distances[0])
        written = [note.written_BKE for note in self.roll_out(batch).bus.blocks]
        vectors = torch.cat([w.flatten(0, 1) for w in written if w is not None])
        codes_from(self.model, vectors, self.how.seed)


def _constant_rate(config: TrainingConfig, steps: int) -> TrainingConfig:
    """The run's own optimizer, with a cosine that has hardly begun when the drill ends."""
    stage = config.stages[0].model_copy(update={"first_step": 0})
    return config.model_copy(update={"steps": 4 * steps, "scale": 1.0, "stages": (stage,)})
