"""Table 3: contrasts, thresholds and verdicts."""

import pytest

from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL, Execution, ExecutionRun
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.conditions import GENERATED, HARDER
from pdt.evaluation.protocol.evidence_gates import (
    EvidenceGate,
    Verdict,
    judge_gates,
    registered_questions,
)
from tests.support.evaluations import small_config, small_settings
from tests.support.evidence_samples import PERFECT, document, judged, written


@pytest.mark.paper("Table 3")
def test_every_contrast_has_its_sign_and_its_sides() -> None:
    """Two documents: what oracle, learned and zero plans and the control find of four facts."""
    halves = {
        "oracle": [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "learned": [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
        "zero": [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
        "self_only": [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
    }
    nothing = ((1.0,) * 4,) * 3
    raw = Raw(
        documents=[document("r0"), document("r1")],
        written=[written(c, name) for name in ("r0", "r1") for c in halves],
        judgments=[
            Judgment(screen=screen, condition=c, record_id=name, judged=judged(table))
            for name in ("r0", "r1")
            for c, table in halves.items()
            for screen, table in (("exact", table), ("nli", halves["learned"]))
            if screen == "exact" or c in ("oracle", "learned")
        ],
        likelihoods=[
            Likelihoods(condition=c, record_id=name, nll=nll, choices={})
            for name in ("r0", "r1")
            for c, nll in (
                ("bus", nothing),
                ("self_only", (nothing[0], (1.0, 1.0, 3.0, 3.0), nothing[2])),
            )
        ],
        execution=Execution(
            runs=tuple(
                ExecutionRun(
                    side=side,
                    record_id=name,
                    repeat=repeat,
                    rounds=rounds,
                    tokens=9,
                    seconds=seconds,
                    cpu_seconds=2 * seconds,
                    plan_seconds=0.1,
                    prefill_seconds=0.5,
                    decode_seconds=1.0,
                    barrier_seconds=0.1,
                )
                for name in ("r0", "r1")
                for side, rounds, seconds in ((PACKED, 3, 2.0), (SERIAL, 9, 5.0), (ONE, 3, 1.5))
                for repeat, seconds in ((0, seconds), (1, seconds + 1))
            ),
            peak_memory_bytes=1,
            documents_per_second=1.0,
        ),
    )
    found = compute_measures(raw, small_settings(small_config()))
    expected = {
        "planner.retained": 3 / 4,
        "planner.zero_drop": 1 / 2,
        "sibling.owner_recall": 1 / 4,
        "sibling.dependency_nll": 2.0,
        "sibling.other_nll": 0.0,
        "execution.rounds_ratio": 1 / 3,
        "execution.speedup": 5 / 2,
        "execution.cpu_ratio": 5 / 2,
        "execution.speedup_repeats": (5 / 2 + 6 / 3) / 2,
        "execution.packed.plan_seconds": 0.1,
        "screens.nli_agrees": 23 / 24,
        "screens.nli_finds": 6 / 7,
        "screens.nli_false_alarms": 0.0,
    }
    assert {name: found[name].estimate for name in expected} == pytest.approx(expected)
    assert all(found[name].documents == 2 for name in expected)


@pytest.mark.paper("Table 3")
def test_a_busy_machine_in_one_repeat_does_not_change_the_ratio() -> None:
    """The second time the packed answer waits ten seconds for a core; the spread says so."""
    runs = tuple(
        ExecutionRun(
            side=side, record_id="r0", repeat=repeat, rounds=1, tokens=1, seconds=seconds + waited
        )
        for side, seconds in ((PACKED, 2.0), (SERIAL, 5.0), (ONE, 1.0))
        for repeat, waited in ((0, 0.0), (1, 10.0 if side == PACKED else 0.0))
    )
    raw = Raw(
        documents=[document()],
        execution=Execution(runs=runs, peak_memory_bytes=1, documents_per_second=1.0),
    )
    found = compute_measures(raw, small_settings(small_config()))
    assert found["execution.speedup"].estimate == 5 / 2
    spread = found["execution.speedup_repeats"]
    assert spread.low == pytest.approx(5 / 12)
    assert spread.high == 5 / 2


@pytest.mark.paper("Table 3")
def test_the_planners_gates_are_not_met_by_the_teachers_plans() -> None:
    raw = Raw(
        documents=[document()],
        written=[written("oracle"), written("zero")],
        judgments=[
            Judgment(screen="exact", condition=name, record_id="r0", judged=judged(table))
            for name, table in (("oracle", PERFECT), ("zero", [[0] * 4] * 3))
        ],
    )
    found = compute_measures(raw, small_settings(small_config(), plan="oracle"))
    assert found["oracle_planner.zero_drop"].estimate == 1
    verdicts = {judged.gate.measure: judged.verdict for judged in judge_gates(found)}
    assert verdicts["planner.zero_drop"] is Verdict.NOT_MEASURED


@pytest.mark.paper("Table 3")
def test_the_thresholds_are_those_of_table_three() -> None:
    gates = {g.measure: g for row in registered_questions() for g in row.gates}
    registered = {
        name: (gate.judged_on, *gate.threshold)
        for name, gate in gates.items()
        if gate.source == "Table 3"
    }
    assert registered == {
        "oracle.owner_recall": ("low", "≥", 0.9),
        "oracle.leakage": ("high", "≤", 0.1),
        "oracle.completion": ("estimate", "≥", 0.9),
        "oracle.longform": ("estimate", "≥", 1.0),
        "planner.retained": ("estimate", "≥", 0.8),
        "planner.zero_drop": ("estimate", "≥", 0.3),
        "swap.retained": ("estimate", "≥", 0.8),
        "swap.moved_minus_unmoved": ("estimate", "≥", 0.3),
    }
    questions = [row.question for row in registered_questions()]
    assert len(questions) == 14
    assert [q[:2] for q in questions[6:]] == [f"H{number}" for number in range(1, 9)]


@pytest.mark.paper("Table 3")
def test_a_bound_is_judged_where_the_paper_names_a_bound() -> None:
    recall = next(g for row in registered_questions() for g in row.gates if g.judged_on == "low")
    good = Measure(estimate=0.95, low=0.91, high=0.97, documents=9)
    assert recall.verdict(good) is Verdict.MET
    assert recall.verdict(good.model_copy(update={"low": 0.89})) is Verdict.UNMET
    assert recall.verdict(None) is Verdict.NOT_MEASURED
    assert recall.verdict(good.model_copy(update={"documents": 7})) is Verdict.NOT_MEASURED


def test_a_gate_has_exactly_one_threshold() -> None:
    with pytest.raises(ValueError, match="exactly one threshold"):
        EvidenceGate(name="x", measure="y", judged_on="low", source="project")


def test_every_gate_without_its_measure_says_so() -> None:
    assert {judged.verdict for judged in judge_gates({})} == {Verdict.NOT_MEASURED}


def test_the_conditions_are_the_papers() -> None:
    assert [condition.name for condition in GENERATED if condition not in HARDER] == [
        "oracle", "learned", "zero", "swap", "no_dynamic", "self_only",
        "mutated", "exchanged", "senders", "scrambled", "closed_gate",
    ]  # fmt: skip
