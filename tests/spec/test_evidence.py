"""The measures of §7 against cases computed by hand."""

import math
import random

import numpy as np
import pytest

from pdt.evaluation import bits, ownership
from pdt.evaluation.bootstrap import Bootstrap, Measure
from pdt.evaluation.communication import Likelihoods, mean_nll
from pdt.evaluation.completion import outline_completion
from pdt.evaluation.conditions import GENERATED, SWAP
from pdt.evaluation.evidence_gates import EvidenceGate, Verdict, judge_gates, registered_questions
from pdt.evaluation.execution import ONE, PACKED, SERIAL, Execution, ExecutionRun
from pdt.evaluation.held_out import HeldOutChoice, HeldOutDocument, HeldOutFact
from pdt.evaluation.judgments import Judged, Judgment
from pdt.evaluation.longform import LongformLimits, is_longform
from pdt.evaluation.measures import compute_measures
from pdt.evaluation.results import Raw
from pdt.evaluation.written import Written, WrittenLane
from tests.evaluations import small_config, small_settings

IDENTITY = (0, 1, 2)
CHOICE = HeldOutChoice(
    dependency_id="d1",
    choice_id="c1",
    text="Lion",
    alternatives=("Wolf", "Lion", "Bear", "Moon"),
    entropy_bits=2,
    owner_lane=0,
    receiver_lane=1,
    cue="the Song of the",
    cue_tokens=(7, 8),
    alternative_tokens=((20,), (21,), (22,), (23,)),
    receiver_token=5,
)


def document(name: str = "r0", *, choices: tuple[HeldOutChoice, ...] = ()) -> HeldOutDocument:
    """Four facts: lane 0 owns two in two nodes, lanes 1 and 2 one each; lane 2 may mention f1."""

    def fact(number: int, lane: int, node: int, permitted: tuple[int, ...] = ()) -> HeldOutFact:
        return HeldOutFact(
            id=f"f{number}",
            statement=f"Fact {number}.",
            hard_negative=f"Not fact {number}.",
            owner_lane=lane,
            owner_node=node,
            reference_lanes=permitted,
            permitted_lanes=permitted,
        )

    return HeldOutDocument(
        record_id=name,
        split="test",
        family_key=name,
        category="sieges",
        teacher="hand",
        text_sha256="0" * 64,
        facts=(fact(1, 0, 0, (2,)), fact(2, 0, 1), fact(3, 1, 0), fact(4, 2, 0)),
        section_lengths=(4, 4, 4),
        dependency_tokens=((), (2, 3), ()),
        dependency_owner=0,
        attacked_tokens=((), (2,), ()),
        choices=choices,
    )


def judged(
    stated: list[list[int]],
    mentioned: list[list[int]] | None = None,
    false: list[list[int]] | None = None,
) -> Judged:
    nothing = [[0] * 4 for _ in range(3)]
    return Judged(
        stated_KF=stated, mentioned_KF=mentioned or stated, hard_negative_KF=false or nothing
    )


PERFECT = [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def written(
    condition: str,
    name: str = "r0",
    *,
    before: tuple[int, ...] = IDENTITY,
    after: tuple[int, ...] | None = None,
    tokens: tuple[tuple[int, ...], ...] = ((1,), (1,), (1,)),
) -> Written:
    return Written(
        condition=condition,
        record_id=name,
        lane_of_plan=after or before,
        unmoved_lane_of_plan=before,
        lane_at_position=IDENTITY,
        lanes=tuple(WrittenLane(text="", tokens=row, finish="length") for row in tokens),
    )


@pytest.mark.paper("§7.2", "Table 3")
def test_a_perfect_answer_has_full_recall_no_leakage_and_a_complete_outline() -> None:
    d, j = document(), judged(PERFECT)
    assert ownership.owner_recall(d, j, IDENTITY) == 1
    assert ownership.leakage(d, j, IDENTITY) == 0
    assert outline_completion(d, j, IDENTITY) == 1
    assert ownership.duplication(d, j) == 0
    assert ownership.hard_negative_rate(j) == 0


@pytest.mark.paper("§7.2")
def test_an_owner_fact_written_by_the_wrong_lane_is_lost_and_leaks() -> None:
    moved = judged([[0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    assert ownership.owner_recall(document(), moved, IDENTITY) == 3 / 4
    # Eight lane-fact pairs are not of the owner; lane 2 may mention f1, so seven may not.
    assert ownership.leakage(document(), moved, IDENTITY) == 1 / 7
    assert outline_completion(document(), moved, IDENTITY) == 3 / 4


@pytest.mark.paper("§7.2")
def test_a_fact_in_two_lanes_is_owned_leaked_and_duplicated() -> None:
    twice = judged([[1, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert ownership.owner_recall(document(), twice, IDENTITY) == 1
    assert ownership.leakage(document(), twice, IDENTITY) == 1 / 7
    assert ownership.duplication(document(), twice) == 1 / 4


@pytest.mark.paper("§7.2")
def test_a_permitted_mention_is_a_reference_and_no_leak() -> None:
    mention = [[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    j = judged(PERFECT, mention)
    assert ownership.leakage(document(), j, IDENTITY) == 0
    assert ownership.reference_recall(document(), j, IDENTITY) == 1
    assert ownership.reference_recall(document(), judged(PERFECT), IDENTITY) == 0
    assert ownership.duplication(document(), j) == 0


@pytest.mark.paper("§7.2")
def test_a_hard_negative_is_not_the_fact() -> None:
    j = judged([[0] * 4] * 3, false=[[1, 0, 0, 0], [0] * 4, [0] * 4])
    assert ownership.owner_recall(document(), j, IDENTITY) == 0
    assert ownership.hard_negative_rate(j) == 1 / 12


@pytest.mark.paper("§7.2")
def test_an_empty_lane_loses_its_own_facts_and_no_others() -> None:
    j = judged([[1, 1, 0, 0], [0] * 4, [0, 0, 0, 1]])
    assert ownership.owner_recall(document(), j, IDENTITY) == 3 / 4
    assert not is_longform("", 0, LongformLimits(tokens=1, paragraphs=1))


@pytest.mark.paper("§7.1", "Table 3")
def test_after_a_swap_facts_are_looked_for_where_their_plans_went() -> None:
    """Lanes 0 and 1 exchange plans and write accordingly; lane 2 is not part of the contrast."""
    swapped = judged([[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    after = tuple(SWAP.lane_after(lane) for lane in IDENTITY)
    assert after == (1, 0, 2)
    raw = Raw(
        documents=[document()],
        written=[written("learned"), written("swap", after=after)],
        judgments=[
            Judgment(screen="exact", condition=name, record_id="r0", judged=j)
            for name, j in (("learned", judged(PERFECT)), ("swap", swapped))
        ],
    )
    found = compute_measures(raw, small_settings(small_config()))
    assert found["swap.moved_recall"].estimate == 1
    assert found["swap.unmoved_recall"].estimate == 0
    assert found["swap.retained"].estimate == 1
    assert found["swap.moved_minus_unmoved"].estimate == 1
    assert found["swap.owner_recall"].estimate == 3 / 4


@pytest.mark.paper("§7.1")
def test_a_learned_plan_is_judged_at_the_lane_where_the_planner_put_it() -> None:
    """The planner put the outline of teacher lane 0 on lane 2."""
    lanes = (2, 0, 1)
    j = judged([[0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    assert ownership.owner_recall(document(), j, lanes) == 1
    assert ownership.leakage(document(), j, lanes) == 0
    assert ownership.owner_recall(document(), j, IDENTITY) == 0


@pytest.mark.paper("§7.2")
def test_long_form_needs_length_paragraphs_and_long_sentences() -> None:
    limits = LongformLimits(tokens=20, paragraphs=2)
    good = "One two three four five six seven eight.\n\nOne two three four five six seven eight."
    assert is_longform(good, 20, limits)
    assert not is_longform(good, 19, limits)
    assert not is_longform(good.replace("\n\n", " "), 20, limits)
    assert not is_longform(good + " Too short.", 20, limits)  # one sentence of three is short
    many = good + " One two three four five six seven eight." * 8
    assert is_longform(many + " Too short.", 20, limits)  # one of eleven


@pytest.mark.paper("§7.2")
def test_the_canonical_long_form_minimum_is_the_papers() -> None:
    from pdt.config import load_config

    assert LongformLimits.of(load_config("canonical")) == LongformLimits(tokens=700, paragraphs=4)


@pytest.mark.paper("Eq. 10", "§7.3")
def test_delta_is_the_likelihood_lost_on_dependency_tokens_and_on_all_others() -> None:
    d = document()
    bus = ((1.0,) * 4, (1.0, 1.0, 0.5, 0.5), (1.0,) * 4)
    without = ((1.0,) * 4, (1.2, 1.0, 2.5, 1.5), (1.0,) * 4)
    scored = [
        Likelihoods(condition=name, record_id="r0", nll=nll, choices={})
        for name, nll in (("bus", bus), ("no_dynamic", without))
    ]
    assert mean_nll(d, scored[0], dependency=True) == 0.5
    found = compute_measures(Raw(documents=[d], likelihoods=scored), small_settings(small_config()))
    assert found["delta.no_dynamic.dependency"].estimate == pytest.approx(1.5)
    assert found["delta.no_dynamic.other"].estimate == pytest.approx(0.02)
    assert found["delta.no_dynamic.selectivity"].estimate == pytest.approx(1.48)


@pytest.mark.paper("Eq. 10", "§7.3")
def test_documents_count_alike_however_many_tokens_they_have() -> None:
    """Two documents with Δ 1 and 3: their mean is 2, whatever their lengths."""
    first = document("r0")
    second = document("r1").model_copy(update={"section_lengths": (1, 1, 1)})
    second = second.model_copy(update={"dependency_tokens": ((0,), (), ())})
    rows = [
        Likelihoods(condition=condition, record_id=name, nll=nll, choices={})
        for condition, name, nll in (
            ("bus", "r0", ((0.0,) * 4,) * 3),
            ("no_dynamic", "r0", ((0.0,) * 4, (0.0, 0.0, 1.0, 1.0), (0.0,) * 4)),
            ("bus", "r1", ((0.0,), (0.0,), (0.0,))),
            ("no_dynamic", "r1", ((3.0,), (0.0,), (0.0,))),
        )
    ]
    raw = Raw(documents=[first, second], likelihoods=rows)
    found = compute_measures(raw, small_settings(small_config()))
    assert found["delta.no_dynamic.dependency"].estimate == pytest.approx(2)


@pytest.mark.paper("§7.3")
def test_a_mutation_is_judged_only_where_the_attacked_producer_is_needed() -> None:
    """Lane 0 is attacked and told word d1; d2 came whole from lane 2."""
    whole = CHOICE.model_copy(update={"dependency_id": "d2", "owner_lane": 2})
    d = document(choices=(CHOICE, whole))
    sure, guess = [-99.0, 0.0, -99.0, -99.0], [-1.0] * 4
    rows = [
        Likelihoods(condition=name, record_id="r0", nll=((0.0,) * 4, nll, (0.0,) * 4), choices=c)
        for name, nll, c in (
            ("bus", (0.0, 0.0, 1.0, 1.0), {"d1": sure, "d2": sure}),
            ("mutated", (0.0, 0.0, 4.0, 1.0), {"d1": guess, "d2": sure}),
        )
    ]
    raw = Raw(
        documents=[d],
        likelihoods=rows,
        coined=[
            written(name, tokens=((7, 8, 21, *[1] * 60), (*[1] * 40, 7, 8, word), (7, 8, 21)))
            for name, word in (("bus", 21), ("mutated", 20))
        ],
    )
    found = compute_measures(raw, small_settings(small_config()))
    assert found["delta.mutated.dependency"].estimate == pytest.approx(3)
    assert found["bits.bus.share"].estimate == pytest.approx(1)
    assert found["bits.mutated.share"].estimate == pytest.approx(0)
    assert found["agreement.bus.both"].estimate == 1
    assert found["agreement.bus.agree"].estimate == 1
    assert found["agreement.mutated.agree"].estimate == 0


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
                    rounds=rounds,
                    tokens=9,
                    seconds=seconds,
                    prefill_seconds=0.5,
                    decode_seconds=1.0,
                    barrier_seconds=0.1,
                )
                for name in ("r0", "r1")
                for side, rounds, seconds in ((PACKED, 3, 2.0), (SERIAL, 9, 5.0), (ONE, 3, 1.5))
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
        "screens.agreement": 23 / 24,
        "screens.nli_finds": 6 / 7,
        "screens.nli_false_alarms": 0.0,
    }
    assert {name: found[name].estimate for name in expected} == pytest.approx(expected)
    assert all(found[name].documents == 2 for name in expected)


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


def test_a_receiver_that_knows_gets_all_bits_and_one_that_guesses_none() -> None:
    d = document(choices=(CHOICE,))
    sure, guess = [-9.0] * 4, [-1.0] * 4
    sure[1] = 0.0
    assert bits.choice_bits(CHOICE, guess) == pytest.approx(2)
    assert bits.choice_bits(CHOICE, sure) == pytest.approx(math.log2(1 + 3 * math.exp(-9)))
    rows = [
        Likelihoods(condition=name, record_id="r0", nll=((0.0,) * 4,) * 3, choices={"d1": p})
        for name, p in (("bus", sure), ("no_dynamic", guess))
    ]
    found = compute_measures(Raw(documents=[d], likelihoods=rows), small_settings(small_config()))
    assert found["bits.h"].estimate == 2
    assert found["bits.bus.share"].estimate == pytest.approx(1, abs=1e-3)
    assert found["bits.no_dynamic.share"].estimate == pytest.approx(0)


def test_a_confident_wrong_floor_does_not_make_more_than_h_arrive() -> None:
    wrong = [0.0, -9.0, -9.0, -9.0]
    rows = [
        Likelihoods(condition=name, record_id="r0", nll=((0.0,) * 4,) * 3, choices={"d1": p})
        for name, p in (("bus", [-9.0, 0.0, -9.0, -9.0]), ("no_dynamic", wrong))
    ]
    raw = Raw(documents=[document(choices=(CHOICE,))], likelihoods=rows)
    found = compute_measures(raw, small_settings(small_config()))
    assert found["bits.bus.over_floor"].estimate > 2
    assert found["bits.bus.share"].estimate <= 1


def coined(owner: tuple[int, ...], receiver: tuple[int, ...]) -> bits.Agreement:
    lanes = (owner, receiver, (1,))
    return bits.agreement(CHOICE, written("bus", tokens=lanes), block_tokens=4, window_blocks=16)


def test_agreement_compares_the_words_behind_the_cue() -> None:
    owner = (7, 8, 21, 1)
    assert coined(owner, (1, 1, 1, 7, 8, 21)).agree
    assert not coined(owner, (1, 1, 1, 7, 8, 20)).agree
    assert not coined(owner, (1, 1, 1, 7, 8, 99)).agree  # no alternative at all
    assert not coined(owner, (1, 1, 1, 1)).both


def test_two_words_outside_the_pool_never_agree() -> None:
    assert not coined((7, 8, 99, 1), (1, 1, 1, 7, 8, 98)).agree


def test_a_word_is_in_time_when_its_note_could_reach_the_state_that_chose_it() -> None:
    owner = (7, 8, 21, 1)  # block 0 of four tokens, complete
    assert coined(owner, (1, 1, 1, 7, 8, 21)).in_time
    # The first token of a block is chosen before the barrier's notes are read (reading 29).
    assert not coined(owner, (1, 1, 7, 8, 21)).in_time
    assert not coined(owner, (1, 7, 8, 21)).in_time
    assert not coined((7, 8, 21), (1, 1, 1, 7, 8, 21)).in_time  # the owner's block is not complete


@pytest.mark.paper("§7.1", "Table 3")
def test_intervals_have_the_coverage_of_a_known_distribution() -> None:
    """Means of 40 coin flips: a 95% interval should hold 0.5 in about 95 of 100 samples."""
    held = 0
    boot = Bootstrap(resamples=400, confidence=0.95, seed=0)
    for sample in range(200):
        draw = np.random.default_rng(sample).random(40)
        found = boot.mean({f"r{n}": float(value) for n, value in enumerate(draw)})
        assert found is not None
        held += found.low <= 0.5 <= found.high
    assert 0.90 <= held / 200 <= 0.985


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error() -> None:
    values = np.random.default_rng(3).normal(size=400)
    boot = Bootstrap(resamples=10_000, confidence=0.95, seed=1)
    found = boot.mean({f"r{n}": float(v) for n, v in enumerate(values)})
    assert found is not None
    error = values.std() / 20
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


@pytest.mark.paper("§7.1")
def test_a_difference_is_paired_by_document() -> None:
    """b is a + 1 in every document: the difference is certain, however wide a is."""
    a = {f"r{n}": float(n) for n in range(20)}
    b = {name: value + 1 for name, value in a.items()}
    boot = Bootstrap(resamples=500, confidence=0.95, seed=0)
    found = boot.difference(b, a)
    assert found is not None
    assert found.estimate == pytest.approx(1)
    assert found.high - found.low < 1e-9
    alone = boot.mean(a)
    assert alone is not None
    assert alone.high - alone.low > 1


def test_a_document_without_the_thing_measured_is_left_out() -> None:
    boot = Bootstrap(resamples=200, confidence=0.95, seed=0)
    found = boot.difference({"a": 1.0, "b": 2.0}, {"b": 1.0, "c": 9.0})
    assert found is not None
    assert (found.estimate, found.documents) == (1.0, 1)
    assert boot.mean({}) is None


def test_the_same_seed_gives_the_same_interval() -> None:
    values = {f"r{n}": random.Random(n).random() for n in range(30)}
    first, second = (Bootstrap(resamples=300, confidence=0.95, seed=5) for _ in range(2))
    assert first.mean(values) == second.mean(values)


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
    assert len(registered_questions()) == 6


@pytest.mark.paper("Table 3")
def test_a_bound_is_judged_where_the_paper_names_a_bound() -> None:
    recall = next(g for row in registered_questions() for g in row.gates if g.judged_on == "low")
    good = Measure(estimate=0.95, low=0.91, high=0.97, documents=9)
    assert recall.verdict(good) is Verdict.MET
    assert recall.verdict(good.model_copy(update={"low": 0.89})) is Verdict.UNMET
    assert recall.verdict(None) is Verdict.NOT_MEASURED


def test_a_gate_has_exactly_one_threshold() -> None:
    with pytest.raises(ValueError, match="exactly one threshold"):
        EvidenceGate(name="x", measure="y", judged_on="low", source="project")


def test_every_gate_without_its_measure_says_so() -> None:
    assert {judged.verdict for judged in judge_gates({})} == {Verdict.NOT_MEASURED}


def test_the_conditions_are_the_papers() -> None:
    assert [condition.name for condition in GENERATED] == [
        "oracle", "learned", "zero", "swap", "no_dynamic", "self_only",
        "mutated", "exchanged", "scrambled", "closed_gate",
    ]  # fmt: skip
