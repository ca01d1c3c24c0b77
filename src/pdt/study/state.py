"""Where a killed step of the study goes on: a saved step like a run's, with plain weights.

step-000050/weights.safetensors    what is trained, by name
step-000050/…                      the rest of a saved step (`pdt.training.saved_step`)
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.nn import Parameter

from pdt.binding import refuse_other
from pdt.model.pieces import read_rows
from pdt.training.ranks import Ranks
from pdt.training.saved_step import (
    OPTIMIZER,
    checkpoint_path,
    moments_of,
    read_state,
    remove_partial,
    restore_moments,
    whole_steps,
    write_step,
)

WEIGHTS, NEEDED = "weights.safetensors", {"progress", "bound"}


def save_state(
    work: Path,
    weights: Mapping[str, Parameter],
    optimizer: torch.optim.Optimizer,
    step: int,
    bound: Mapping[str, object],
) -> None:
    """What is trained, the optimizer's moments, and what both are bound to; earlier steps go."""
    target = checkpoint_path(work, step)
    write_step(
        target,
        {WEIGHTS: weights, OPTIMIZER: moments_of(weights.items(), optimizer)},
        {"progress": {"step": step}, "bound": bound},
        ranks=Ranks(),
        made_by="pdt.study",
        config=bound,
    )
    _keep_only(target, work)


@torch.no_grad()
def restore_state(
    work: Path,
    weights: Mapping[str, Parameter],
    optimizer: torch.optim.Optimizer,
    bound: Mapping[str, object],
) -> int:
    """Fill `weights` and the optimizer in place; returns the steps taken, 0 where none is whole."""
    remove_partial(work)
    source = next(whole_steps(work, _checked), None)
    _keep_only(source, work)  # a damaged one would stand in the way of its step
    if source is None:
        return 0
    state = _checked(source)
    refuse_other(
        state["bound"],
        bound,
        f"{source} is the state of something else.",
        "Give the settings it was begun with, or another --out.",
        sides=("state", "asked for"),
    )
    for name, value in read_rows(source / WEIGHTS, weights).items():
        weights[name].copy_(value)
    restore_moments(weights.items(), optimizer, source)
    return int(state["progress"]["step"])


def _checked(directory: Path) -> dict[str, Any]:
    return read_state(directory, NEEDED)


def _keep_only(step: Path | None, work: Path) -> None:
    for other in work.glob("step-*"):
        if other != step:
            shutil.rmtree(other)
