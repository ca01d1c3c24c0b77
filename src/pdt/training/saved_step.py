"""What any training leaves at a step, in one format: whole or not there, every file digested.

    step-000500/optimizer.safetensors    AdamW's moments by parameter name, and torch's random state
    step-000500/state.json               how far it is, and what it is bound to
    step-000500/manifest.json            size and digest of each file

Weights lie beside them: a saved model in a run's checkpoint (`checkpoint.py`), plain tensors where
a trunk is adapted or a bus drilled (`pdt.study.state`).

Paper: §6.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from pdt.errors import CorruptFile, PdtError, UsageError
from pdt.model.pieces import lay_out, read_rows, write_rows
from pdt.model.trained import STATE
from pdt.provenance import check_manifest, read_json_object, write_json, write_manifest
from pdt.training.ranks import Ranks

OPTIMIZER = "optimizer.safetensors"
RANDOM, MOMENTS = "torch_random_state", ("exp_avg", "exp_avg_sq")
Named = Iterable[tuple[str, Parameter]]


def checkpoint_path(run: Path, step: int) -> Path:
    return run / f"step-{step:06d}"


def write_step(
    target: Path,
    files: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    *,
    ranks: Ranks,
    made_by: str,
    config: object,
    beside: Callable[[Path], None] = lambda work: None,
) -> None:
    """Tensors by file, the state and a manifest; every rank writes the rows it holds."""
    with ranks.new_directory(target) as work:
        with ranks.together():
            if ranks.first:
                for name, tensors in files.items():
                    (work / name).parent.mkdir(exist_ok=True)
                    lay_out(work / name, tensors)
        with ranks.together():
            for name, tensors in files.items():
                write_rows(work / name, tensors, first=ranks.first)
        with ranks.together():
            if ranks.first:
                beside(work)
                write_json(work / STATE, state)
                write_manifest(work, made_by=made_by, config=config)


def read_state(directory: Path, needed: set[str]) -> dict[str, Any]:
    """state.json, after every digest was checked."""
    if not (directory / STATE).is_file():
        raise UsageError(f"{directory} is not a checkpoint: it has no {STATE}.")
    check_manifest(directory, required=[OPTIMIZER, STATE])
    state = read_json_object(directory / STATE)
    if not needed <= state.keys():
        raise CorruptFile(f"{directory / STATE} names no progress. Use an earlier checkpoint.")
    return state


def whole_steps(run: Path, check: Callable[[Path], object]) -> Iterator[Path]:
    """The newest first; one that is damaged is passed over."""
    for directory in sorted(run.glob("step-*"), reverse=True):
        try:
            check(directory)
        except PdtError:
            continue
        yield directory


def moments_of(parameters: Named, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What `optimizer.safetensors` holds."""
    moments = {
        f"{name}/{key}": value
        for name, parameter in parameters
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    return moments | {RANDOM: torch.get_rng_state()}


def restore_moments(parameters: Named, optimizer: torch.optim.Optimizer, directory: Path) -> None:
    """Put this rank's rows of the moments back, and torch's random stream with them."""
    parameters = list(parameters)
    like: dict[str, Tensor] = {f"{n}/{key}": p for n, p in parameters for key in MOMENTS}
    like |= {f"{name}/step": torch.zeros(()) for name, _ in parameters}
    found = read_rows(directory / OPTIMIZER, like | {RANDOM: torch.zeros(0)})
    for name, parameter in parameters:
        kept = {
            key: found[f"{name}/{key}"] for key in ("step", *MOMENTS) if f"{name}/{key}" in found
        }
        if kept:
            optimizer.state[parameter] = kept
    torch.set_rng_state(found[RANDOM])


def remove_partial(run: Path) -> None:
    """What a killed run left half-written."""
    for directory in run.glob(".step-*.partial-*"):
        shutil.rmtree(directory)
