"""Checkpoints: whole or not there, digested, bound to their run, and all that a run needs to go on.

    step-000500/model/                   a saved model, as `pdt generate` reads it
    step-000500/optimizer.safetensors    AdamW's moments by parameter name, and torch's random state
    step-000500/state.json               step, place in the documents, the whole configuration, and
                                         how matrices were multiplied
    step-000500/manifest.json            size and digest of each file

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
from pdt.errors import CorruptFile, PdtError, UsageError
from pdt.model.kernels.matmul import Way
from pdt.model.pdt import ParallelDecoder
from pdt.model.pieces import lay_out, read_rows, write_rows
from pdt.model.store import (
    TRUNK,
    check_binding,
    load_model,
    model_tensors,
    read_binding,
    write_binding,
)
from pdt.model.trained import STATE
from pdt.provenance import check_manifest, read_json_object, write_json, write_manifest
from pdt.training.curriculum import stages_of
from pdt.training.engine import Engine
from pdt.training.optimizer import learned_parameters

MODEL, OPTIMIZER = "model", "optimizer.safetensors"
RANDOM, MOMENTS = "torch_random_state", ("exp_avg", "exp_avg_sq")
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


def checkpoint_path(run: Path, step: int) -> Path:
    return run / f"step-{step:06d}"


def save_checkpoint(
    run: Path, engine: Engine, optimizer: torch.optim.Optimizer, progress: Progress
) -> Path:
    """Write everything of this step, whole or not at all; every rank writes the rows it holds."""
    model, ranks = engine.model, engine.ranks
    target = checkpoint_path(run, progress.step)
    files = _files(engine, optimizer)
    with ranks.new_directory(target) as work:
        with ranks.together():
            if ranks.first:
                (work / MODEL).mkdir()
                for name, tensors in files.items():
                    lay_out(work / name, tensors)
        with ranks.together():
            for name, tensors in files.items():
                write_rows(work / name, tensors, first=ranks.first)
        with ranks.together():
            if ranks.first:
                write_binding(model, work / MODEL)
                config = model.config.model_dump(mode="json")
                state = {
                    "progress": asdict(progress),
                    "products": engine.products,
                    "config": config,
                }
                write_json(work / STATE, state)
                write_manifest(work, made_by="pdt.training", config=config)
    return target


def load_checkpoint(
    directory: Path, expect: PdtConfig, *, trunk: str | None = None
) -> tuple[ParallelDecoder, Progress]:
    """The model and the progress, after every digest was checked.

    Another architecture, notes condition, optimizer, schedule or curriculum is refused; another
    number of ranks is not.

    Paper: §6.
    """
    state = _checked_state(directory)
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


def restore_optimizer(
    model: ParallelDecoder, optimizer: torch.optim.Optimizer, directory: Path
) -> None:
    """Put this rank's rows of the moments back, and torch's random stream with them."""
    learned = learned_parameters(model)
    like: dict[str, Tensor] = {f"{n}/{key}": p for n, p in learned for key in MOMENTS}
    like |= {f"{name}/step": torch.zeros(()) for name, _ in learned}
    found = read_rows(directory / OPTIMIZER, like | {RANDOM: torch.zeros(0)})
    for name, parameter in learned:
        kept = {
            key: found[f"{name}/{key}"] for key in ("step", *MOMENTS) if f"{name}/{key}" in found
        }
        if kept:
            optimizer.state[parameter] = kept
    torch.set_rng_state(found[RANDOM])


def latest_checkpoint(run: Path) -> Path | None:
    """The newest whole checkpoint; one that is damaged is passed over."""
    for directory in sorted(run.glob("step-*"), reverse=True):
        try:
            _checked_state(directory)
            read_binding(directory / MODEL)
        except PdtError:
            continue
        return directory
    return None


def prune_checkpoints(run: Path, config: PdtConfig) -> None:
    """Keep the last ones and those at stage borders."""
    borders = {stage.stop_step for stage in stages_of(config.training)}
    kept = sorted(run.glob("step-*"))[-config.training.keep_checkpoints :]
    for directory in run.glob("step-*"):
        step = int(directory.name.removeprefix("step-"))
        if directory not in kept and step not in borders:
            shutil.rmtree(directory)


def remove_partial(run: Path) -> None:
    """What a killed run left half-written."""
    for directory in run.glob(".step-*.partial-*"):
        shutil.rmtree(directory)


def _checked_state(directory: Path) -> dict:  # type: ignore[type-arg]
    if not (directory / STATE).is_file():
        raise UsageError(f"{directory} is not a checkpoint: it has no {STATE}.")
    check_manifest(directory, required=[OPTIMIZER, STATE])
    state = read_json_object(directory / STATE)
    if not {"progress", "config"} <= state.keys():
        raise CorruptFile(f"{directory / STATE} names no progress. Use an earlier checkpoint.")
    return state


def _files(engine: Engine, optimizer: torch.optim.Optimizer) -> dict[str, dict[str, Tensor]]:
    model, identity = engine.model, engine.model.trunk_identity
    parts = model_tensors(model, with_trunk=identity is not None and identity.source is None)
    if TRUNK in parts and engine.given_trunk is not None:
        parts[TRUNK] = engine.given_trunk
    moments = {
        f"{name}/{key}": value
        for name, parameter in learned_parameters(model)
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    files = {f"{MODEL}/{name}": part for name, part in parts.items()}
    return files | {OPTIMIZER: moments | {RANDOM: torch.get_rng_state()}}
