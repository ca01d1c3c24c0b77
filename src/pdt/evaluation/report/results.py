"""results.json: settings, measures and gates, all of which follow from the raw lines.

Paper: §7.
"""

from pathlib import Path
from typing import Literal

from pdt.contract import Contract, Line, Sha256
from pdt.errors import CorruptFile
from pdt.evaluation.lines.raw import read_contract
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.protocol.evidence_gates import MeasuredGate
from pdt.evaluation.protocol.settings import EvaluationSettings

RESULTS = "results.json"


class Results(Contract):
    """results.json."""

    schema_version: Literal["pdt.results/3"] = "pdt.results/3"
    settings: EvaluationSettings
    models: dict[str, Line]
    """The digest of each checkpoint that ran, by its role."""
    made_from: Sha256
    """Of the config and inputs that the manifest names."""
    measures: dict[str, Measure]
    gates: tuple[MeasuredGate, ...]


def read_results(directory: Path) -> Results:
    path = directory / RESULTS
    if not path.is_file():
        raise CorruptFile(f"{path} is missing.\nIs {directory} a directory of `pdt eval run`?")
    return read_contract(path, Results)
