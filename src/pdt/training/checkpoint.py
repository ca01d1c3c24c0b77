"""Checkpoints of a run: a saved step, bound to its run, with all that the run needs to go on.

    step-000500/model/        a saved model, as `pdt generate` reads it
    step-000500/state.json    step, place in the documents, the whole configuration, and how
                              matrices were multiplied
    step-000500/…             the rest of a saved step (`saved_step.py`)

Learning rate, stage, document order and lane assignment are functions of step, place and seed, so
they need no state of their own. The files are the same, however many ranks wrote them.

Paper: §6.
"""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from pdt.config import PdtConfig, validate_config
from pdt.model.kernels.matmul import Way
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import (
    TRUNK,
    check_binding,
    load_model,
    model_tensors,
    read_binding,
    write_binding,
)
from pdt.model.trained import STATE
from pdt.provenance import read_json_object
from pdt.training.curriculum import stages_of
from pdt.training.engine import Engine
from pdt.training.optimizer import learned_parameters
from pdt.training.saved_step import (
    OPTIMIZER,
    checkpoint_path,
    moments_of,
    read_state,
    whole_steps,
    write_step,
)

MODEL, NEEDED = "model", {"progress", "config"}
_FREE = (
    "trunk.source",
    "records.",
    "sources.",
    "teacher.",
    "cluster.",
    "training.recompute",
    "training.save_steps",
    "training.keep_checkpoints",
    "training.shard_trunk",
    "training.watch.",
    "training.trunk_cache.",
)
"""What may differ between a checkpoint and the run that takes it up."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    step: int = 0
    """Steps taken."""
    position: int = 0
    """Documents read."""


def save_checkpoint(
    run: Path, engine: Engine, optimizer: torch.optim.Optimizer, progress: Progress
) -> Path:
    """Write everything of this step, whole or not at all; every rank writes the rows it holds."""
    model = engine.model
    target = checkpoint_path(run, progress.step)
    config = model.config.model_dump(mode="json")
    write_step(
        target,
        _files(engine, optimizer),
        {"progress": asdict(progress), "products": engine.products, "config": config},
        ranks=engine.ranks,
        made_by="pdt.training",
        config=config,
        beside=lambda work: write_binding(model, work / MODEL),
    )
    return target


def load_checkpoint(
    directory: Path, expect: PdtConfig, *, trunk: str | None = None
) -> tuple[ParallelDecoder, Progress]:
    """The model and the progress, after every digest was checked.

    Another architecture, notes condition, optimizer, schedule or curriculum is refused; another
    number of ranks is not.

    Paper: §6.
    """
    state = read_state(directory, NEEDED)
    saved = validate_config(state["config"], where=str(directory / STATE))
    check_binding(saved, expect, directory, free=_FREE)
    model = load_model(directory / MODEL, trunk=trunk)
    model.config = expect
    return model, Progress(**state["progress"])


def other_products(directory: Path, engine: Engine) -> str | None:
    """What to say where a checkpoint was multiplied another way than the run goes on."""
    before = read_json_object(directory / STATE).get("products", Way.DEFAULT)
    if before == engine.products:
        return None
    return (
        f"{directory} multiplied FP32 matrices by {before!r}, this machine by "
        f"{engine.products.value!r} (`pdt bench matmul`): losses go on, but not bit for bit.\n"
        f"PDT_MATMUL={before} keeps the old way."
    )


def latest_checkpoint(run: Path) -> Path | None:
    """The newest whole checkpoint; one that is damaged is passed over."""

    def check(directory: Path) -> None:
        read_state(directory, NEEDED)
        read_binding(directory / MODEL)

    return next(whole_steps(run, check), None)


def prune_checkpoints(run: Path, config: PdtConfig) -> None:
    """Keep the last ones and those at stage borders."""
    borders = {stage.stop_step for stage in stages_of(config.training)}
    kept = sorted(run.glob("step-*"))[-config.training.keep_checkpoints :]
    for directory in run.glob("step-*"):
        step = int(directory.name.removeprefix("step-"))
        if directory not in kept and step not in borders:
            shutil.rmtree(directory)


def _files(engine: Engine, optimizer: torch.optim.Optimizer) -> dict[str, dict[str, Tensor]]:
    model, identity = engine.model, engine.model.trunk_identity
    parts = model_tensors(model, with_trunk=identity is not None and identity.source is None)
    if TRUNK in parts and engine.given_trunk is not None:
        parts[TRUNK] = engine.given_trunk
    files = {f"{MODEL}/{name}": part for name, part in parts.items()}
    return files | {OPTIMIZER: moments_of(learned_parameters(model), optimizer)}
