"""The checkpoints of an evaluation: the bus model, and a control that differs in nothing but notes.

Paper: §7.1, Table 3 (identical parameters, path and budget).
"""

from pathlib import Path

import torch

from pdt.errors import BindingMismatch, UsageError
from pdt.model.kernels.prepare import prepare
from pdt.model.names import model_directory
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import check_binding, load_model
from pdt.model.trained import trained_of
from pdt.provenance import MANIFEST, sha256_file
from pdt.terms import NotesCondition

UNMATCHED = (
    "notes.condition", "notes.codebook_start", "trunk.source", "records.", "sources.", "teacher.",
    "cluster.", "training.watch.", "training.trunk_cache.", "training.recompute",
    "training.save_steps", "training.keep_checkpoints",
)  # fmt: skip
"""May differ between a bus checkpoint and its control: no plan path, objective or budget."""


def load_for_evaluation(
    path: Path, condition: NotesCondition | None
) -> tuple[ParallelDecoder, str]:
    """A model directory or a checkpoint of a run, and the digest that names it.

    It must have been trained under `condition`; None takes any.
    """
    directory = model_directory(path)
    if not directory.is_dir():
        raise UsageError(f"{path} is not a directory. Give a saved model or a checkpoint.")
    model = load_model(directory)
    prepare(model.device)
    if condition is not None and model.config.notes.condition is not condition:
        raise BindingMismatch(
            f"{directory} was trained under another notes condition.",
            [("notes.condition", model.config.notes.condition, condition)],
            "--model takes the bus checkpoint, --self-only the self-only one (§7.1).",
            sides=("checkpoint", "expected"),
        )
    return model, sha256_file(directory / MANIFEST)


def check_matched(bus: ParallelDecoder, self_only: ParallelDecoder) -> None:
    """The control has the same parameters, path and budget; only what a lane may read differs."""
    check_binding(self_only.config, bus.config, Path("the self-only checkpoint"), free=UNMATCHED)
    ours, theirs = (
        {name: tuple(p.shape) for name, p in m.named_parameters()} for m in (bus, self_only)
    )
    assert ours == theirs
    same = all(
        torch.equal(a, b)
        for (_, a), (_, b) in zip(bus.trunk.shared(), self_only.trunk.shared(), strict=True)
    )
    if not same:
        raise BindingMismatch(
            "The self-only checkpoint stands on another trunk.",
            [("trunk", "other weights", "the bus checkpoint's")],
            "Train both from one trunk; else the comparison is of trunks.",
            sides=("self-only", "bus"),
        )


def check_budgets(bus: Path, self_only: Path) -> None:
    """As far as both models say: the same number of steps on the same records."""
    ours, theirs = trained_of(bus), trained_of(self_only)
    if ours is None or theirs is None:
        return
    rows = [("step", theirs.step, ours.step), ("records", theirs.records, ours.records)]
    wrong = [row for row in rows if row[1] != row[2] and None not in row]
    if wrong:
        raise BindingMismatch(
            f"{self_only} has another training budget than {bus}.",
            wrong,
            "Table 3 compares at identical budgets: give models of one step on the same records.",
            sides=("self-only", "bus"),
        )
