"""The curriculum as data: which stage a step belongs to, what it trains, which losses count.

Paper: §6, Table 2.
"""

from dataclasses import dataclass
from itertools import pairwise

from pdt.config import TrainingConfig
from pdt.errors import UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.terms import Component, Loss, PlanCondition

REQUIRED = {
    Loss.TOKEN: Component.LANES,
    Loss.PLAN: Component.PLANNER,
    Loss.ROUTE: Component.HEADS,
    Loss.PROGRESS: Component.HEADS,
    Loss.FACT_WRITE: Component.HEADS,
    Loss.NOTE: Component.NOTE_WRITER,
    Loss.ORDER: Component.PLANNER,
    Loss.COMMITMENT: Component.NOTE_WRITER,
    Loss.CODEBOOK: Component.NOTE_WRITER,
    Loss.USAGE: Component.NOTE_WRITER,
    Loss.READ_OUT: Component.NOTE_WRITER,
    Loss.POINT: Component.PLANNER,
}
"""The module each loss needs: where it is frozen, the loss is off (Table 2)."""


@dataclass(frozen=True)
class Stage:
    """One row of Table 2, with its steps after scaling."""

    number: int
    first_step: int
    stop_step: int
    """The first step that is no longer of this stage."""
    plan: PlanCondition
    trains: frozenset[Component]
    learning_rate: float | None = None
    """Of its own cosine, where it has one."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(loss for loss in Loss if REQUIRED[loss] in self.trains)


def stages_of(config: TrainingConfig) -> list[Stage]:
    """Table 2, scaled. Paper: §6, Table 2."""
    borders = [config.scaled(stage.first_step) for stage in config.stages]
    spans = pairwise([*borders, config.scaled(config.steps)])
    return [
        Stage(number, first, stop, stage.plan, frozenset(stage.trains), stage.learning_rate)
        for number, (stage, (first, stop)) in enumerate(zip(config.stages, spans, strict=True))
    ]


def stage_at(config: TrainingConfig, step: int) -> Stage:
    """The stage whose steps include `step`."""
    for stage in stages_of(config):
        if stage.first_step <= step < stage.stop_step:
            return stage
    raise UsageError(f"Step {step} is past the curriculum's {config.scaled(config.steps)} steps.")


def component_of(parameter: str) -> Component | None:
    """Which component a parameter belongs to, by its name; None for the frozen trunk.

    The projection of plan nodes (Eq. 3) is part of Plan-KV.
    """
    top, *rest = parameter.split(".")
    match top:
        case "trunk":
            return None
        case "plan_memory":
            return Component.PLAN_KV
        case "lanes":
            return {"decoder": Component.LANES}.get(rest[1]) or Component(rest[1])
    return Component(top)


def apply_manifest(model: ParallelDecoder, stage: Stage) -> None:
    """Let the stage's components learn and nothing else.

    A frozen parameter keeps no gradient: AdamW would decay one whose gradient is zero.
    """
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(component_of(name) in stage.trains)
        if not parameter.requires_grad:
            parameter.grad = None
