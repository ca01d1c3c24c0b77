"""Eq. 10, bits and agreement (§7.3) against cases computed by hand."""

import math

import pytest

from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures import bits
from pdt.evaluation.measures.communication import mean_nll
from pdt.evaluation.measures.compute import compute_measures
from tests.support.evaluations import small_config, small_settings
from tests.support.evidence_samples import CHOICE, document, written


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
    sure: tuple[float, ...] = (-99.0, 0.0, -99.0, -99.0)
    guess: tuple[float, ...] = (-1.0,) * 4
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


def test_a_receiver_that_knows_gets_all_bits_and_one_that_guesses_none() -> None:
    d = document(choices=(CHOICE,))
    sure, guess = (-9.0, 0.0, -9.0, -9.0), (-1.0,) * 4
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
    wrong = (0.0, -9.0, -9.0, -9.0)
    rows = [
        Likelihoods(condition=name, record_id="r0", nll=((0.0,) * 4,) * 3, choices={"d1": p})
        for name, p in (("bus", (-9.0, 0.0, -9.0, -9.0)), ("no_dynamic", wrong))
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


def test_chance_is_of_the_choices_that_agreement_is_of() -> None:
    """Of a word of two and one of four, only the first is in time."""
    pair = {"alternatives": ("Wolf", "Lion"), "alternative_tokens": ((20,), (21,))}
    late = {"dependency_id": "d2", "cue_tokens": (9, 8)}
    d = document(choices=(CHOICE.model_copy(update=pair), CHOICE.model_copy(update=late)))
    owner = (7, 8, 21, *[1] * 40, 9, 8, 21)
    raw = Raw(documents=[d], coined=[written("bus", tokens=(owner, (*[1] * 40, *owner[:3]), (1,)))])
    found = compute_measures(raw, small_settings(small_config()))
    assert found["agreement.bus.chance"].estimate == 1 / 2


def test_a_word_of_several_tokens_is_chosen_by_the_state_before_its_first() -> None:
    words = {"alternative_tokens": ((20, 30), (21, 31), (22, 32), (23, 33))}
    told = written("bus", tokens=((7, 8, 21, 31), (1, 1, 7, 8, 21, 31), (1,)))
    choice = CHOICE.model_copy(update=words)
    assert not bits.agreement(choice, told, block_tokens=4, window_blocks=16).in_time


def test_a_word_is_in_time_when_its_note_could_reach_the_state_that_chose_it() -> None:
    owner = (7, 8, 21, 1)  # block 0 of four tokens, complete
    assert coined(owner, (1, 1, 1, 7, 8, 21)).in_time
    # The first token of a block is chosen before the barrier's notes are read (reading 29).
    assert not coined(owner, (1, 1, 7, 8, 21)).in_time
    assert not coined(owner, (1, 7, 8, 21)).in_time
    assert not coined((7, 8, 21), (1, 1, 1, 7, 8, 21)).in_time  # the owner's block is not complete
