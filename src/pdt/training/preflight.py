"""Everything that would make a run worthless or stop it later, refused before its first step.

Paper: §4.3, §6, Table 2.
"""

import shutil
from pathlib import Path

from pdt.config import PdtConfig
from pdt.errors import ConfigError, UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordShards
from pdt.records.fit import check_fit
from pdt.terms import Component
from pdt.training.curriculum import Stage, stages_of
from pdt.training.losses import WITHOUT_ROLLOUT
from pdt.training.optimizer import learned_parameters

_UPPER = {Component.LANES, Component.PLAN_KV, Component.SNC}
"""What learns from written sections alone."""


def check_run(model: ParallelDecoder, shards: RecordShards, run: Path, ranks: int = 1) -> None:
    """Stages that learn, records of this very model, and room to keep what was learned."""
    check_stages(model.config)
    check_ranks(model.config, ranks)
    check_fit(shards, model.config, model.tokenizer)
    check_disk(model, run)


def check_stages(config: PdtConfig) -> None:
    """Refuse a stage some of whose components no counted loss reaches. Paper: Table 2."""
    for stage in stages_of(config.training):
        if idle := _idle(stage, config):
            names = ", ".join(sorted(component.value for component in idle))
            counted = ", ".join(loss.value for loss in stage.losses) or "none"
            raise ConfigError(
                f"Stage {stage.number} of training.stages lists {names}, which would learn "
                f"nothing: the losses that count there are {counted}, weighted as in objective.\n"
                "A loss counts where its own module trains (Table 2): train that module too, "
                "raise its weight, or take the component out of the stage."
            )


def _idle(stage: Stage, config: PdtConfig) -> set[Component]:
    counted = {loss for loss in stage.losses if config.objective.weight(loss) > 0}
    if not counted:
        return set(stage.trains)
    return set() if counted - WITHOUT_ROLLOUT else _UPPER & stage.trains


def check_ranks(config: PdtConfig, count: int) -> None:
    """A step is dealt to ranks in whole batches: it is then the same documents on any number."""
    accumulation = config.training.optimizer.accumulation
    if accumulation % count:
        raise UsageError(
            f"A step of training.optimizer.accumulation {accumulation} batches cannot be dealt "
            f"evenly to {count} ranks.\n"
            "Start a number of processes that divides it, or choose another accumulation."
        )


def checkpoint_bytes(model: ParallelDecoder) -> int:
    """About what one checkpoint takes: weights and AdamW's two moments; a random trunk as well."""
    learned = sum(p.numel() * p.element_size() for _, p in learned_parameters(model))
    identity = model.trunk_identity
    with_trunk = identity is not None and identity.source is None
    trunk = sum(p.numel() * p.element_size() for _, p in model.trunk.shared())
    return 3 * learned + (trunk if with_trunk else 0)


def check_disk(model: ParallelDecoder, run: Path) -> None:
    """Refuse a disk on which not even one checkpoint has room."""
    place = next(parent for parent in (run, *run.absolute().parents) if parent.exists())
    free, needed = shutil.disk_usage(place).free, checkpoint_bytes(model)
    if free < needed:
        raise UsageError(
            f"{place} has {free / 1e9:,.2f} GB free, and one checkpoint takes about "
            f"{needed / 1e9:,.2f} GB.\nFree some space, or choose another --out."
        )
