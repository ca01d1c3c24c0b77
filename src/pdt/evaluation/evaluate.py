"""One evaluation from end to end: conditions → generate → judge → measure → gate → report.

Paper: §7, Table 3.
"""

from collections.abc import Callable
from pathlib import Path

from pdt.evaluation.generate.open import Asked, open_runs
from pdt.evaluation.generate.parts import kept_parts
from pdt.evaluation.generate.runs import Watch
from pdt.evaluation.generate.workers import measure_parts
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.write import RECORDS, conclude, write_report
from pdt.evaluation.screens.judge import check_screens, judge
from pdt.evaluation.screens.registry import open_screens
from pdt.provenance import code_digest, refuse_existing


def evaluate(
    asked: Asked,
    out: Path,
    *,
    workers: int = 1,
    watched: Callable[[int], Watch] = lambda runs: lambda label, done: None,
) -> Results:
    """Write the result directory `out`; a killed evaluation goes on after its last whole batch.

    `watched` is told how many document runs are to come, and gives what hears of each.
    """
    refuse_existing(out)
    screens = open_screens(asked.screens)
    runs, digests = open_runs(asked)
    bus = runs.models[Weights.BUS].config
    check_screens(screens, runs.documents, lanes=bus.lanes.count)
    frozen = [screen.calibration for screen in screens if screen.calibration is not None]
    config = {
        "settings": runs.settings.model_dump(mode="json"),
        "model": bus.model_dump(mode="json"),
        "records": runs.shards.config.model_dump(mode="json"),
        "calibration": frozen[0].model_dump(mode="json") if frozen else None,
    }
    inputs = {RECORDS: runs.shards.digest, **digests}
    texts = [document.text_sha256 for document in runs.documents]
    begun = {"config": config, "inputs": inputs, "documents": texts, "code": code_digest()}
    to_come = sum(job.runs for job in runs.jobs)
    with kept_parts(out, begun) as runs.parts:
        if workers > 1:
            runs.watch = watched(to_come)
            measure_parts(runs, asked, workers=workers)
        runs.watch = watched(to_come)  # what workers measured is read in a moment
        raw = runs.measure_all()
        for judgment in judge(screens, raw, runs.settings):
            raw.judgments.append(judgment)
            runs.watch(f"judging, {judgment.screen}", 0)
        results = conclude(raw, runs.settings, config=config, inputs=inputs)
        write_report(out, raw, results, config=config, inputs=inputs)
    return results
