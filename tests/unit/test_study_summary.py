"""The verdict of a study: a gate is met when every seed meets it."""

from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.protocol.evidence_gates import judge_gates
from pdt.study.directions import directions_of
from pdt.study.summary import GateOverSeeds, StudySummary, as_markdown


def test_a_gate_is_met_when_every_seed_meets_it() -> None:
    seeds = []
    for recall in (0.95, 0.85):
        measure = Measure(estimate=recall, low=recall - 0.01, high=recall + 0.01, documents=9)
        leakage = Measure(estimate=0.02, low=0.01, high=0.03, documents=9)
        seeds.append(judge_gates({"oracle.owner_recall": measure, "oracle.leakage": leakage}))
    gates = tuple(GateOverSeeds(judged=judged) for judged in zip(*seeds, strict=True))
    summary = StudySummary(
        code_revisions=("test", "test"), documents=9, models=({}, {}), gates=gates, directions=()
    )
    assert not summary.met
    rows = {row.split(" | ")[1]: row for row in as_markdown(summary).splitlines() if "|" in row}
    assert rows["owner recall"].endswith("| **UNMET** |")
    assert "| 95.0% (94.0 to 96.0) | 85.0% (84.0 to 86.0) |" in rows["owner recall"]
    assert rows["unauthorized leakage"].endswith("| met |")
    assert rows["outline completion"].endswith("| **not measured** |")
    assert "**1 of 42 gates are met** in every one of 2 seeds" in as_markdown(summary)


def test_an_effect_goes_the_right_way_when_it_does_in_every_seed_that_measured_it() -> None:
    def seed(recall: float, leakage: float | None) -> dict[str, Measure]:
        values = {"oracle.owner_recall": recall, "planner.zero_drop": 0}
        values |= {} if leakage is None else {"oracle.leakage": leakage}
        return {
            name: Measure(estimate=value, low=value, high=value, documents=1)
            for name, value in values.items()
        }

    plan = "a plan says what a lane owns"
    for seeds, outcome in (
        ([seed(0.9, 0.1), seed(0.5, 0.2)], "yes"),
        ([seed(0.9, 0.1), seed(0.2, 0.5)], "no"),
        ([seed(0.9, 0.1), seed(0.5, None)], "yes"),
        ([seed(0.9, None), seed(0.5, None)], "not measured"),
    ):
        found = {direction.effect: direction for direction in directions_of(seeds)}
        assert found[plan].outcome == outcome
        assert found.pop(plan).right is (outcome == "yes")
        assert not any(direction.right for direction in found.values())
