"""Where a killed step of the study goes on: weights and optimizer in one file, written whole."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from pdt.binding import refuse_other
from pdt.provenance import atomic_path


def save_state(
    target: Path,
    weights: Mapping[str, Tensor],
    optimizer: torch.optim.Optimizer,
    step: int,
    bound: Mapping[str, object],
) -> None:
    """`weights` by name, the optimizer's moments by parameter number, what both are bound to."""
    state = {f"weight.{name}": value.detach() for name, value in weights.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        state |= {f"{kind}.{number}": value.clone() for kind, value in moments.items()}
    with atomic_path(target) as partial:
        save_file(state, partial, metadata={"step": str(step), "bound": json.dumps(bound)})


@torch.no_grad()
def restore_state(
    source: Path,
    weights: Mapping[str, Tensor],
    optimizer: torch.optim.Optimizer,
    bound: Mapping[str, object],
) -> int:
    """Fill `weights` and the optimizer in place; returns the steps taken, 0 without a file."""
    if not source.is_file():
        return 0
    with safe_open(source, "pt") as file:
        metadata = file.metadata()
    step, theirs = int(metadata["step"]), json.loads(metadata["bound"])
    refuse_other(
        theirs,
        bound,
        f"{source} is the state of something else.",
        "Give the settings it was begun with, or another --out.",
        sides=("state", "asked for"),
    )
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in load_file(source).items():
        kind, _, rest = name.partition(".")
        if kind == "weight":
            weights[rest].copy_(value)
        else:
            moments.setdefault(int(rest), {})[kind] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return step
