"""The sections of the objective and of training.

Paper: Eq. 9, §5.3, §6, Table 2.
"""

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from pdt.config.node import Count, Strict, Weight
from pdt.terms import Component, ComputeDtype, Loss, PlanCondition


class ObjectiveConfig(Strict):
    """The weights of the combined objective. Paper: §5.3, Eq. 9."""

    token: Weight
    plan: Weight
    route: Weight
    progress: Weight
    fact_write: Weight
    note: Weight
    order: Weight
    commitment: Weight
    codebook: Weight
    usage: Weight
    read_out: Weight
    """That a note alone names what a sibling will write of it; not in the paper, 0 there."""
    point: Weight = 0.0
    """That a learned node is nearest to its own target; not in the paper, 0 there."""
    note_temperature: Annotated[float, Field(gt=0)]
    """Of the InfoNCE between notes and what they were written from."""
    dependency_token: Weight
    """What a token that depends on a sibling counts in the token loss; the paper says 1."""
    fact_begin: Weight = 1.0
    """What the first tokens of a sentence that tells an owned fact count there; in the paper 1."""

    def weight(self, loss: Loss) -> float:
        return getattr(self, loss.value)


class StageConfig(Strict):
    """One row of the curriculum; which losses count follows from what trains. Paper: Table 2."""

    first_step: Annotated[int, Field(ge=0)]
    plan: PlanCondition
    trains: tuple[Component, ...]
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    """The peak of a warmup and cosine of the stage's own; null follows the whole run's."""

    @model_validator(mode="after")
    def _trains_something(self) -> "StageConfig":
        if not self.trains:
            raise ValueError("the stage trains nothing; name a component or remove the stage")
        return self


class OptimizerConfig(Strict):
    """AdamW with warmup and cosine decay. Paper: §6, Appendix A."""

    learning_rate: Annotated[float, Field(gt=0)]
    coordination_rate: Annotated[float, Field(gt=0)] = 1.0
    """All but the upper stacks starts from nothing and may learn at so many times that rate."""
    weight_decay: Weight
    warmup_steps: Annotated[int, Field(ge=0)]
    clip_norm: Annotated[float, Field(gt=0)]
    batch_documents: Count
    accumulation: Count
    """Batches whose gradients make one step."""
    alike_batches: Count = 1
    """So many batches at a time are dealt by length, so that they pad less; 1 deals by chance."""


class WatchConfig(Strict):
    """How a run is seen; none of it changes what is learned, so a resumed run may change it."""

    evaluate_documents: Annotated[int, Field(ge=0)] = 64
    """Held-out documents, at most, that are read at every stage border; 0 reads none."""
    tensorboard: bool = True
    """Write TensorBoard event files beside the metrics, where tensorboard is installed."""
    wandb_project: str | None = None
    """Also send the metrics to this project of Weights & Biases."""


class TrunkCacheConfig(Strict):
    """States of the frozen trunk, kept on disk. Paper: §3.1, §6."""

    directory: str | None = None
    """Where; runs on the same trunk and records may share it. Null computes them every time."""
    max_bytes: Count = 20_000_000_000
    """At this size nothing more is added."""


class TrainingConfig(Strict):
    """Curriculum and optimization. Paper: §6, Table 2, Appendix A."""

    seed: int
    """Of the order of documents and of the semantic-to-physical assignment."""
    scale: Annotated[float, Field(gt=0)]
    """Multiplies every step number below: the whole curriculum, shorter."""
    steps: Count
    stages: tuple[StageConfig, ...]
    optimizer: OptimizerConfig
    recompute: bool
    """Recompute upper activations in the backward pass: less memory, more time."""
    dtype: ComputeDtype = ComputeDtype.AUTO
    """What trunk and lanes compute in; masters, gradient sums and AdamW are FP32 always."""
    larger_rung: bool = False
    """The trunk repeats a failed executor at scale: training asks for that one's audit (§7.4)."""
    shard_trunk: bool = False
    """Spread the frozen layers over the ranks too: less memory, more communication."""
    save_steps: Count
    """Steps between checkpoints; not scaled."""
    keep_checkpoints: Count
    """How many of the last ones stay, besides those at stage borders."""
    watch: WatchConfig = WatchConfig()
    trunk_cache: TrunkCacheConfig = TrunkCacheConfig()

    def scaled(self, step: int) -> int:
        return round(step * self.scale)

    @model_validator(mode="after")
    def _stages_follow(self) -> "TrainingConfig":
        borders = [self.scaled(stage.first_step) for stage in self.stages]
        borders.append(self.scaled(self.steps))
        if len(borders) < 2 or borders[0] != 0:
            raise ValueError("stages must begin with one whose first_step is 0")
        if any(a >= b for a, b in pairwise(borders)):
            raise ValueError(
                f"scale {self.scale} gives stage borders {borders}: every stage needs a step of "
                "its own; use a larger scale or other first_step values"
            )
        return self
