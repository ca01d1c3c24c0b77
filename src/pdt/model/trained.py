"""How long a model was trained and on what, as its directory says.

Paper: Table 3 (identical budgets).
"""

from pathlib import Path

from pdt.contract import Contract, Sha256
from pdt.model.names import model_directory
from pdt.provenance import MANIFEST, read_json_object

STATE, TRAINED = "state.json", "trained"
"""What says it: a file of a checkpoint, and an input that a packed model's manifest names."""


class Trained(Contract):
    """The steps of a model, and the corpus they were taken on."""

    step: int
    records: Sha256 | None
    """The corpus; None for a checkpoint taken out of its run."""


def trained_of(path: Path) -> Trained | None:
    """Of a checkpoint of a run or a model packed from one; None where nobody noted it."""
    if (path / STATE).is_file():
        step = read_json_object(path / STATE)["progress"]["step"]
        run = path.resolve().parent / MANIFEST
        inputs = read_json_object(run)["inputs"] if run.is_file() else {}
        return Trained(step=step, records=inputs.get("records", {}).get("digest"))
    found = read_json_object(model_directory(path) / MANIFEST).get("inputs", {}).get(TRAINED)
    return None if found is None else Trained.model_validate(found)
