"""metrics.jsonl: one line a step and one a held-out evaluation, which a resumed run continues.

A line names its `kind` and the `step` it belongs to, counted from 0: an evaluation that follows
step 9 carries 9. `at` and `seconds` are the clock's; all other numbers are the same in every run of
one configuration.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pdt.errors import CorruptFile
from pdt.parse import parse_json
from pdt.provenance import atomic_path
from pdt.terms import Loss

METRICS = "metrics.jsonl"
STEP, EVALUATION = "step", "evaluation"
PLANS_APART = "plans_apart"
Metrics = dict[str, Any]
Watch = Callable[[Metrics], None]
"""Is handed every line as it is written."""


def append_metrics(run: Path, line: Metrics) -> None:
    """Add one line, with the time of day."""
    line["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    with (run / METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_metrics(run: Path) -> list[Metrics]:
    """Every whole line; the last may be one that a killed run was writing."""
    path = run / METRICS
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found: list[Metrics] = []
    for number, text in enumerate(lines, start=1):
        try:
            line = parse_json(text)
            numbers = {"step": int(line["step"]), "stage": int(line["stage"])}
            clock = {"seconds": float(line["seconds"])}
            found.append({"kind": STEP, **line, **numbers, **clock})
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                raise CorruptFile(
                    f"{path} line {number} is not a line of metrics: {error}.\n"
                    "It was changed by hand; take the line out."
                ) from error
    return found


def forget_later_metrics(run: Path, step: int) -> None:
    """Drop the lines of `step` and after, which the run will write again."""
    kept = [line for line in read_metrics(run) if line["step"] < step]
    if (run / METRICS).is_file():
        text = "".join(json.dumps(line) + "\n" for line in kept)
        with atomic_path(run / METRICS) as partial:
            partial.write_text(text, encoding="utf-8")


def losses_of(line: Metrics) -> dict[str, float]:
    """The losses of a line by name, the weighted sum first."""
    names = ["loss", *(loss.value for loss in Loss)]
    return {name: line[name] for name in names if name in line}
