"""Recall, leakage, completion and long form (§7.2) against cases computed by hand."""

import pytest

from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures import ownership
from pdt.evaluation.measures.completion import outline_completion
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.measures.longform import LongformLimits, is_longform
from pdt.evaluation.protocol.conditions import SWAP
from tests.support.evaluations import small_config, small_settings
from tests.support.evidence_samples import IDENTITY, PERFECT, document, judged, written


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


@pytest.mark.paper("Table 3")
def test_a_plan_node_is_complete_only_with_all_its_facts() -> None:
    d = document()
    first, second, *others = d.facts
    one_node = d.model_copy(
        update={"facts": (first, second.model_copy(update={"owner_node": 0}), *others)}
    )
    half = judged([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert ownership.owner_recall(one_node, half, IDENTITY) == 3 / 4
    assert outline_completion(one_node, half, IDENTITY) == 2 / 3


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
