"""The harder gates (H1 to H8) against cases computed by hand, each with the fault that it finds."""

import pytest

from pdt.evaluation.lines.altered import Altered
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import Judgment, LaneFacts
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.evidence_gates import Need, Verdict, had_by, judge_gates
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.shown import verdict_line
from pdt.evaluation.report.write import all_met
from tests.support.evaluations import small_config, small_settings
from tests.support.evidence_samples import (
    CHOICE,
    PERFECT,
    REFERENCE,
    document,
    judged,
    written,
)

NOTHING = [[0] * 4 for _ in range(3)]


def measured(
    documents: list[HeldOutDocument],
    rows: list[tuple[Written, LaneFacts]],
    **more: list[Likelihoods] | list[Written] | list[Altered],
) -> dict[str, Measure]:
    raw = Raw(
        documents=documents,
        written=[row for row, _ in rows],
        judgments=[
            Judgment(screen="exact", condition=w.condition, record_id=w.record_id, judged=found)
            for w, found in rows
        ],
        **more,  # type: ignore[arg-type]
    )
    return compute_measures(raw, small_settings(small_config()))


def verdicts(
    measures: dict[str, Measure], has: frozenset[Need] = frozenset(Need)
) -> dict[str, str]:
    return {gate.gate.measure: gate.verdict.value for gate in judge_gates(measures, has)}


def test_a_division_that_only_the_plan_knows_is_judged_alone() -> None:
    """Nine dealt documents at chance beside nine that the request tells: H1 is unmet, E1 unseen."""
    dealt = [document(f"d{n}", division="dealt") for n in range(9)]
    told = [document(f"t{n}", division="phase") for n in range(9)]
    chance = [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    found = measured(
        [*dealt, *told],
        [(written("oracle", d.record_id), judged(chance)) for d in dealt]
        + [(written("oracle", d.record_id), judged(PERFECT)) for d in told],
    )
    assert found["dealt.owner_recall"].estimate == pytest.approx(1 / 4)
    assert found["dealt.owner_recall"].documents == 9
    assert verdicts(found)["dealt.owner_recall"] == "unmet"
    assert verdicts(found)["dealt.leakage"] == "unmet"


def test_where_no_division_was_dealt_the_facts_are_dealt_anew() -> None:
    told = [document(f"t{n}", division="phase") for n in range(9)]
    moved = told[0].model_copy(update={"facts": told[0].facts[::-1]})
    found = measured(
        told,
        [(written("oracle", d.record_id), judged(PERFECT)) for d in told]
        + [(written("dealt_anew", d.record_id), judged(NOTHING)) for d in told],
        altered=[
            Altered(
                condition="dealt_anew",
                document=moved.model_copy(update={"record_id": d.record_id}),
            )
            for d in told
        ],
    )
    assert found["dealt.owner_recall"].estimate == 0
    assert found["oracle.owner_recall"].estimate == 1


def test_documents_without_a_dependency_have_rows_of_their_own() -> None:
    coined = [document(f"c{n}", choices=(CHOICE,)) for n in range(9)]
    plain = [document(f"p{n}") for n in range(9)]
    rows = []
    for condition in ("oracle", "learned", "zero"):
        rows += [(written(condition, d.record_id), judged(PERFECT)) for d in coined]
        rows += [(written(condition, d.record_id), judged(NOTHING)) for d in plain]
    found = measured([*coined, *plain], rows)
    assert found["uncoined.owner_recall"].estimate == 0
    assert found["uncoined.owner_recall"].documents == 9
    assert found["uncoined.planner.zero_drop"].estimate == 0
    assert verdicts(found)["uncoined.owner_recall"] == "unmet"


def test_two_rates_at_chance_keep_their_ratio_and_fall_through_the_floor() -> None:
    third = Measure(estimate=0.33, low=0.3, high=0.36, documents=64)
    same = Measure(estimate=1.0, low=0.9, high=1.1, documents=64)
    at_chance = {"planner.retained": same, "learned.owner_recall": third}
    assert verdicts(at_chance)["planner.retained"] == "unmet"
    good = {"planner.retained": same, "learned.owner_recall": same}
    assert verdicts(good)["planner.retained"] == "met"
    assert verdicts({"planner.retained": same})["planner.retained"] == "not measured"


def test_a_transplanted_node_is_looked_for_in_the_lane_that_got_it() -> None:
    d = document()
    drawn = d.transplant
    assert drawn is not None and drawn.lane != drawn.from_lane
    old = d.facts_at(drawn.lane, drawn.node)
    new = d.facts_at(drawn.from_lane, drawn.from_node)
    assert old != new and len(old) == len(new) == 1
    follows, ignores = ([[0] * 4 for _ in range(3)] for _ in range(2))
    follows[drawn.lane][new[0]] = 1
    ignores[drawn.lane][old[0]] = 1
    for table, told in ((follows, (1.0, 0.0)), (ignores, (0.0, 1.0))):
        found = measured(
            [d],
            [
                (written("transplant"), judged(table)),
                (written("dropped"), judged(table)),
            ],
        )
        assert (found["transplant.new"].estimate, found["transplant.old"].estimate) == told
        assert found["dropped.old"].estimate == told[1]
        assert verdicts(found)["transplant.new"] == ("met" if table is follows else "unmet")
        # A lane that writes nothing at all has removed the fact as well: the floor says no.
        assert verdicts(found)["transplant.old"] == ("met" if table is follows else "unmet")


def test_a_plan_that_is_zeroed_must_cost_the_facts_that_were_not_begun() -> None:
    """Lane 0 states f1 in block 0 and f2 behind it; only f2 can be lost from block 1 on."""
    text = ("First one. Then the second.", "Three here.", "Four here.")
    ends = (11,)
    places = [[0, 11, -1, -1], [-1, -1, 0, -1], [-1, -1, -1, 0]]
    whole = (
        written("oracle", texts=text, block_ends=ends),
        judged(PERFECT, places=places),
    )
    zeroed = written("zero_from_1", texts=text, block_ends=ends)
    kept = measured([document()], [whole, (zeroed, judged(PERFECT, places=places))])
    assert kept["persistence.from_1.recall"].estimate == 1
    assert kept["persistence.from_1.cost"].estimate == 0  # the shortcut
    assert verdicts(kept)["persistence.from_1.cost"] == "unmet"
    lost = [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    found = measured([document()], [whole, (zeroed, judged(lost, places=places))])
    assert found["persistence.from_1.cost"].estimate == 1
    assert found["persistence.from_1.cost_told"].estimate == 1
    assert "persistence.from_1.cost_dealt" not in found


def test_what_follows_a_siblings_sentence_is_the_plans_or_the_siblings() -> None:
    """Each lane begins with nine characters of its sibling; what it says after them counts."""
    own = judged(PERFECT, places=[[10] * 4] * 3)
    assert measured([document()], [(written("opening"), own)])["opening.plans"].estimate == 1
    siblings = judged([[0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]], places=[[10] * 4] * 3)
    found = measured([document()], [(written("opening"), siblings)])
    assert found["opening.plans"].estimate == 0
    assert verdicts(found)["opening.plans"] == "unmet"
    forced = judged([[1, 1, 1, 0], [0] * 4, [0] * 4], places=[[10, 10, 0, 0]] * 3)
    found = measured([document()], [(written("opening"), forced)])
    assert found["opening.plans"].estimate == 1  # f3 stood in what the lane was given


def test_range_is_recall_over_the_same_documents_as_they_were() -> None:
    d = document()
    half = [[1, 1, 0, 0], [0] * 4, [0] * 4]
    found = measured(
        [d, document("r1")],
        [
            (written("learned"), judged(PERFECT)),
            (written("learned", "r1"), judged(NOTHING)),
            (written("shuffled"), judged(half)),
        ],
        altered=[Altered(condition="shuffled", document=d)],
    )
    assert found["range.shuffled"].estimate == 1 / 2
    assert found["range.shuffled"].documents == 1
    assert verdicts(found)["range.shuffled"] == "unmet"
    assert verdicts(found)["range.renamed"] == "not measured"


def test_documents_with_few_and_many_facts_are_held_to_the_recall_of_all() -> None:
    many = document("r1")
    many = many.model_copy(update={"facts": many.facts * 4})
    full = LaneFacts(
        stated_KF=((0,) * 16,) * 3, mentioned_KF=((0,) * 16,) * 3, hard_negative_KF=((0,) * 16,) * 3
    )
    found = measured(
        [document(), many],
        [(written("learned"), judged(PERFECT)), (written("learned", "r1"), full)],
    )
    assert found["range.few_facts"].estimate == 2
    assert found["range.many_facts"].estimate == 0
    assert found["range.many_facts"].documents == 1


def test_the_channel_counts_strong_words_alone_by_lag_and_by_place() -> None:
    """Of a word of 2 bits and two of 6, only the strong ones count; one of them arrives."""
    words = tuple(f"w{n}" for n in range(64))
    strong = {
        "alternatives": words,
        "alternative_tokens": tuple((n,) for n in range(64)),
        "text": "w3",
        "entropy_bits": 6,
    }
    heard = CHOICE.model_copy(update={**strong, "dependency_id": "d2", "receiver_token": 40})
    unheard = CHOICE.model_copy(
        update={**strong, "dependency_id": "d3", "owner_token": 31, "receiver_token": 97}
    )
    d = document(choices=(CHOICE, heard, unheard))
    sure = tuple(0.0 if word == "w3" else -99.0 for word in words)
    row = Likelihoods(
        condition="bus",
        record_id="r0",
        nll=((0.0,) * 4,) * 3,
        choices={"d1": (-1.0,) * 4, "d2": sure, "d3": (-1.0,) * 64},
    )
    found = measured([d], [], likelihoods=[row])
    assert found["channel.bus.share"].estimate == pytest.approx(1 / 2)
    assert found["channel.lag_1.share"].estimate == pytest.approx(1)
    assert found["channel.lag_3.share"].estimate == pytest.approx(0)
    assert found["channel.first_third.share"].estimate == pytest.approx(1)
    assert found["channel.last_third.share"].estimate == pytest.approx(0)
    assert verdicts(found)["channel.bus.share"] == "unmet"
    weak = measured([document(choices=(CHOICE,))], [], likelihoods=[row])
    assert verdicts(weak)["channel.bus.share"] == "not measured"


def test_agreement_over_all_dependencies_leaves_none_out() -> None:
    """Two words and a reference: one word agrees, one is never written, the reference is made."""
    late = CHOICE.model_copy(update={"dependency_id": "d2", "cue_tokens": (9, 8)})
    d = document(choices=(CHOICE, late), references=(REFERENCE,))
    said = judged(PERFECT, [[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])
    spoken = written("bus", tokens=((7, 8, 21, *[1] * 60), (*[1] * 40, 7, 8, 21), (1,)))
    found = measured([d], [(written("learned"), said)], coined=[spoken])
    assert found["agreement.bus.agree"].estimate == 1  # of those that both lanes write in time
    assert found["agreement.all"].estimate == pytest.approx(2 / 3)
    assert verdicts(found)["agreement.all"] == "unmet"
    unread = d.model_copy(update={"dependencies": 4, "unread_choices": ("d7",)})
    found = measured([unread], [(written("learned"), said)], coined=[spoken])
    assert found["agreement.all"].estimate == pytest.approx(2 / 4)


def test_a_reference_is_made_in_time_when_its_owner_had_ended_the_sentence_a_block_before() -> None:
    d = document(references=(REFERENCE,))
    said = [[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    text = ("One is here. Two too.", "Three.", "Four is first. One again.")
    places = [[0, 13, -1, -1], [-1, -1, 0, -1], [15, -1, -1, 0]]
    for ends, ready in (((14,), 1.0), ((20,), 0.0)):
        row = written("learned", texts=text, block_ends=ends)
        found = measured([d], [(row, judged(PERFECT, said, places=places))])
        assert found["references.recall"].estimate == 1
        assert found["references.in_time"].estimate == ready
    nobody = measured([d], [(written("learned"), judged(PERFECT))])
    assert nobody["references.recall"].estimate == 0
    assert verdicts(nobody)["references.recall"] == "unmet"


def test_the_change_on_reference_tokens_is_theirs_alone() -> None:
    d = document(references=(REFERENCE,))
    rows = [
        Likelihoods(condition=name, record_id="r0", nll=((0.0,) * 4, (9.0,) * 4, nll), choices={})
        for name, nll in (("bus", (5.0, 1.0, 1.0, 5.0)), ("no_dynamic", (0.0, 1.5, 2.5, 0.0)))
    ]
    found = measured([d], [], likelihoods=rows)
    assert found["references.delta"].estimate == pytest.approx(1.0)


def test_a_gate_is_not_asked_of_a_corpus_without_what_it_needs() -> None:
    plain = [document(f"r{n}") for n in range(2)]
    assert had_by(plain) == frozenset()
    assert had_by([document(choices=(CHOICE,))]) == {Need.COINED, Need.DEPENDENCIES}
    gates = judge_gates({}, frozenset())
    asked = [gate for gate in gates if gate.verdict is not Verdict.NOT_APPLICABLE]
    assert 0 < len(asked) < len(gates)
    met = tuple(gate.model_copy(update={"verdict": Verdict.MET}) for gate in asked)
    others = tuple(gate for gate in gates if gate not in asked)
    assert all_met((*met, *others))
    assert not all_met((*met[1:], asked[0], *others))
    assert not all_met(others)  # nothing was asked at all


def test_few_documents_are_said_beside_the_count_of_gates() -> None:
    gates = tuple(gate.model_copy(update={"verdict": Verdict.MET}) for gate in judge_gates({}))

    def line(documents: int) -> str:
        settings = EvaluationSettings.model_construct(documents=documents)
        return verdict_line(Results.model_construct(gates=gates, settings=settings))

    assert line(8).endswith("gates are met, on 8 documents: too few to conclude from (under 64).")
    assert line(64).endswith("gates are met, on 64 documents.")


def test_lanes_with_fixed_subjects_are_told_from_lanes_that_take_any() -> None:
    """Three parts of time: always on their own lanes, or on lanes that go round."""

    def of_phase(name: str) -> HeldOutDocument:
        statements = (
            "The Oldham council took a loan of 620 crowns.",
            "The Oldham council brought in a convoy of 59 wagons.",
            "The Oldham council handed back the hostage Eric Kelly.",
        )
        d = document(name, division="phase")
        facts = tuple(
            fact.model_copy(update={"statement": said, "owner_lane": lane})
            for lane, (fact, said) in enumerate(zip(d.facts, statements, strict=False))
        )
        return d.model_copy(update={"facts": facts})

    documents = [of_phase(f"r{n}") for n in range(30)]
    orders = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    nothing = LaneFacts(stated_KF=((0,) * 3,) * 3, mentioned_KF=((0,) * 3,) * 3,
                        hard_negative_KF=((0,) * 3,) * 3)  # fmt: skip
    fixed, free = (
        measured(
            documents,
            [
                (
                    written("learned", d.record_id, before=orders[n % 3 if goes_round else 0]),
                    nothing,
                )
                for n, d in enumerate(documents)
            ],
        )["planner.role_bits"]
        for goes_round in (False, True)
    )
    assert fixed.estimate == pytest.approx(1.585, abs=0.1)
    assert free.estimate == pytest.approx(0, abs=0.1)
