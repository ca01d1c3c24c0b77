"""How long a model was trained and on what, as its directory says.

Paper: Table 3 (identical budgets).
"""

from pathlib import Path

from pdt.contract import Contract, Sha256
from pdt.errors import BindingMismatch
from pdt.model.store import model_directory
from pdt.provenance import MANIFEST, read_json_object
from pdt.training.checkpoint import STATE

TRAINED = "trained"


class Budget(Contract):
    """A packed model's manifest names it under `trained`."""

    step: int
    records: Sha256 | None
    """The corpus; None for a checkpoint taken out of its run."""


def budget_of(path: Path) -> Budget | None:
    """Of a checkpoint of a run or a model packed from one; None where nobody noted it."""
    if (path / STATE).is_file():
        step = read_json_object(path / STATE)["progress"]["step"]
        run = path.resolve().parent / MANIFEST
        inputs = read_json_object(run)["inputs"] if run.is_file() else {}
        return Budget(step=step, records=inputs.get("records", {}).get("digest"))
    found = read_json_object(model_directory(path) / MANIFEST).get("inputs", {}).get(TRAINED)
    return None if found is None else Budget.model_validate(found)


def check_budgets(bus: Path, self_only: Path) -> None:
    """As far as both models say: the same number of steps on the same records."""
    ours, theirs = budget_of(bus), budget_of(self_only)
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
