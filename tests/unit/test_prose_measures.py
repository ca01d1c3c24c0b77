"""Repetition, variety and length of what lanes write."""

import pytest

from pdt.evaluation.measures import prose


def test_a_sentence_that_its_lane_has_said_is_repeated_and_a_siblings_is_shared() -> None:
    lanes = ["One is here. Two is here. One is here.", "One is here. Three is here."]
    assert prose.repeated_sentences(lanes) == pytest.approx(1 / 5)
    assert prose.shared_sentences(lanes) == pytest.approx(3 / 5)


def test_a_lane_that_goes_round_has_few_distinct_runs() -> None:
    assert prose.distinct_trigrams(["a b c d e"]) == 1
    assert prose.distinct_trigrams(["a b c a b c a b c"]) == pytest.approx(3 / 7)


def test_sentence_length_is_in_words() -> None:
    assert prose.sentence_words(["One two three. Four."]) == 2


def test_empty_lanes_have_no_rate() -> None:
    for measure in (
        prose.repeated_sentences, prose.shared_sentences, prose.distinct_trigrams,
        prose.sentence_words,
    ):  # fmt: skip
        assert measure(["", ""]) is None
