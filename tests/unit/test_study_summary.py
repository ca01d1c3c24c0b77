"""The verdict of a study: a gate is met when every seed meets it."""

from pdt.evaluation.bootstrap import Measure
from pdt.evaluation.evidence_gates import judge_gates
from pdt.study.summary import GateOverSeeds, StudySummary, as_markdown


def test_a_gate_is_met_when_every_seed_meets_it() -> None:
    seeds = []
    for recall in (0.95, 0.85):
        measure = Measure(estimate=recall, low=recall - 0.01, high=recall + 0.01, documents=9)
        leakage = Measure(estimate=0.02, low=0.01, high=0.03, documents=9)
        seeds.append(judge_gates({"oracle.owner_recall": measure, "oracle.leakage": leakage}))
    gates = tuple(GateOverSeeds(judged=judged) for judged in zip(*seeds, strict=True))
    summary = StudySummary(code_revision="test", documents=9, gates=gates)
    assert not summary.met
    rows = {row.split(" | ")[1]: row for row in as_markdown(summary).splitlines() if "|" in row}
    assert rows["owner recall"].endswith("| UNMET |")
    assert "0.850 to 0.950" in rows["owner recall"]
    assert rows["unauthorized leakage"].endswith("| met |")
    assert rows["outline completion"].endswith("| not measured |")
    assert as_markdown(summary).count("| met |") == 1
