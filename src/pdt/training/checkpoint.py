"""Checkpoints: whole or not there, digested, bound to their run, and all that a run needs to go on.

    step-000500/model/                   a saved model, as `pdt generate` reads it
    step-000500/optimizer.safetensors    AdamW's moments by parameter name, and torch's random state
    step-000500/state.json               step, place in the documents, the whole configuration
    step-000500/manifest.json            size and digest of each file

Learning rate, stage, document order and lane assignment are functions of step, place and seed, so
they need no state of their own.

Paper: §6.
"""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pdt.config import PdtConfig, validate_config
from pdt.errors import CorruptFile, PdtError, UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import check_binding, load_model, read_binding, save_model
from pdt.provenance import (
    check_manifest,
    new_directory,
    read_json_object,
    write_json,
    write_manifest,
)
from pdt.training.curriculum import stages_of
from pdt.training.optimizer import learned_parameters

MODEL, OPTIMIZER, STATE = "model", "optimizer.safetensors", "state.json"
_FREE = (
    "trunk.source",
    "records.",
    "sources.",
    "teacher.",
    "cluster.",
    "training.save_steps",
    "training.keep_checkpoints",
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
    run: Path, model: ParallelDecoder, optimizer: torch.optim.Optimizer, progress: Progress
) -> Path:
    """Write everything of this step, whole or not at all."""
    target = checkpoint_path(run, progress.step)
    config = model.config.model_dump(mode="json")
    identity = model.trunk_identity
    without_source = identity is not None and identity.source is None
    with new_directory(target) as work:
        save_model(model, work / MODEL, with_trunk=without_source)
        save_file(_moments(model, optimizer), work / OPTIMIZER)
        (work / OPTIMIZER).chmod(0o644)
        write_json(work / STATE, {"progress": asdict(progress), "config": config})
        write_manifest(work, made_by="pdt.training", config=config)
    return target


def load_checkpoint(
    directory: Path, expect: PdtConfig, *, trunk: str | None = None
) -> tuple[ParallelDecoder, dict[str, Tensor], Progress]:
    """The model, the optimizer's tensors and the progress, after every digest was checked.

    Another architecture, notes condition, optimizer, schedule or curriculum is refused.

    Paper: §6.
    """
    state = _checked_state(directory)
    saved = validate_config(state["config"], where=str(directory / STATE))
    check_binding(saved, expect, directory, free=_FREE)
    model = load_model(directory / MODEL, trunk=trunk)
    model.config = expect
    return model, load_file(directory / OPTIMIZER), Progress(**state["progress"])


def restore_optimizer(
    model: ParallelDecoder, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Put the moments back where they were, and torch's random stream with them."""
    for name, parameter in learned_parameters(model):
        kept = {
            key: tensors[f"{name}/{key}"]
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{name}/{key}" in tensors
        }
        if kept:
            optimizer.state[parameter] = kept
    torch.set_rng_state(tensors["torch_random_state"])


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


def _moments(model: ParallelDecoder, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {
        f"{name}/{key}": value.detach().cpu().contiguous()
        for name, parameter in learned_parameters(model)
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    return tensors | {"torch_random_state": torch.get_rng_state()}
