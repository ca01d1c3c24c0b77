"""What an answer costs, packed and lane by lane.

A document's time each way is the best of its repeats: whatever else ran on the machine only adds.

Paper: §3.6, Table 3 (parallel execution).
"""

from statistics import median

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL, SIDES, Execution
from pdt.evaluation.measures.bootstrap import DIGITS, Measure
from pdt.evaluation.measures.evidence import Evidence, Measured

PARTS = ("plan", "prefill", "decode", "barrier")
COSTS = (
    "rounds", "seconds", "cpu_seconds", *(f"{part}_seconds" for part in PARTS),
    "shared_cache_bytes", "private_cache_bytes",
)  # fmt: skip


def execution_measures(evidence: Evidence) -> Measured:
    """Depth, time and memory of the packed frontier against its serial lanes, over documents."""
    execution, boot = evidence.raw.execution, evidence.boot
    if execution is None or not execution.runs:
        return {}
    measures: Measured = {}
    best = {(side, cost): _best(execution, side, cost) for side in SIDES for cost in COSTS}
    for side in SIDES:
        key = f"execution.{side.replace(' ', '_')}"
        for cost in COSTS:
            measures[f"{key}.{cost}"] = boot.mean(best[side, cost])
        tokens = _best(execution, side, "tokens")
        speed = {name: tokens[name] / spent for name, spent in best[side, "seconds"].items()}
        measures[f"{key}.tokens_per_second"] = boot.mean(speed)
    for name, cost in (("speedup", "seconds"), ("cpu_ratio", "cpu_seconds")):
        measures[f"execution.{name}"] = boot.ratio(best[SERIAL, cost], best[PACKED, cost])
        measures[f"execution.{name}_repeats"] = _over_repeats(execution, cost)
    measures["execution.rounds_ratio"] = boot.ratio(best[PACKED, "rounds"], best[SERIAL, "rounds"])
    measures["execution.one_lane_ratio"] = boot.ratio(best[ONE, "seconds"], best[PACKED, "seconds"])
    return measures


def _best(execution: Execution, side: str, cost: str) -> dict[str, float]:
    """By document, the least of its repeats."""
    found: dict[str, float] = {}
    for run in execution.of_side(side):
        value = getattr(run, cost)
        if value is not None:
            found[run.record_id] = min(float(value), found.get(run.record_id, float(value)))
    return found


def _over_repeats(execution: Execution, cost: str) -> Measure | None:
    """Serial over packed in each repeat apart: their median, least and most. No interval."""
    totals: dict[tuple[str, int], float] = {}
    for run in execution.runs:
        key = (run.side, run.repeat)
        totals[key] = totals.get(key, 0.0) + (getattr(run, cost) or 0.0)
    ratios = [
        totals[SERIAL, repeat] / totals[PACKED, repeat]
        for repeat in sorted({run.repeat for run in execution.runs})
        if totals.get((PACKED, repeat)) and (SERIAL, repeat) in totals
    ]
    if not ratios:
        return None
    middle, least, most = (round(f(ratios), DIGITS) for f in (median, min, max))
    documents = len({run.record_id for run in execution.runs})
    return Measure(estimate=middle, low=least, high=most, documents=documents)
