"""What an answer costs, packed and lane by lane.

Paper: §3.6, Table 3 (parallel execution).
"""

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL
from pdt.evaluation.measures.evidence import Evidence, Measured


def execution_measures(evidence: Evidence) -> Measured:
    """Depth and time of the packed frontier against its serial lanes, over documents."""
    execution, boot = evidence.raw.execution, evidence.boot
    if execution is None:
        return {}
    measures: Measured = {}
    rounds, seconds = (
        {
            side: {run.record_id: float(getattr(run, name)) for run in execution.of_side(side)}
            for side in (PACKED, SERIAL, ONE)
        }
        for name in ("rounds", "seconds")
    )
    speed = {
        side: {run.record_id: run.tokens_per_second for run in execution.of_side(side)}
        for side in (PACKED, SERIAL, ONE)
    }
    for side in (PACKED, SERIAL, ONE):
        key = side.replace(" ", "_")
        measures[f"execution.{key}.rounds"] = boot.mean(rounds[side])
        measures[f"execution.{key}.seconds"] = boot.mean(seconds[side])
        measures[f"execution.{key}.tokens_per_second"] = boot.mean(speed[side])
    for part in ("prefill", "decode", "barrier"):
        measures[f"execution.packed.{part}_seconds"] = boot.mean(
            {r.record_id: getattr(r, f"{part}_seconds") for r in execution.of_side(PACKED)}
        )
    measures["execution.rounds_ratio"] = boot.ratio(rounds[PACKED], rounds[SERIAL])
    measures["execution.speedup"] = boot.ratio(seconds[SERIAL], seconds[PACKED])
    return measures
