"""What is drafted, how much of it, and what rows cost."""

from pathlib import Path

import pytest

from pdt.errors import UsageError
from pdt.generation.drafts import NOTHING, Drafting, Lookup
from pdt.generation.row_costs import RowCosts, measure, row_costs
from pdt.generation.settings import settings_from
from tests.conftest import open_model


def test_the_longest_agreement_is_taken_for_the_passage_being_copied() -> None:
    text = Lookup([1, 2, 3, 4, 5, 9, 3, 4, 6, 7])
    for token in (2, 3, 4):
        text.push(token)
    found = text.draft(3)
    assert (found.matched, found.tokens) == (3, (5, 9, 3))  # not 6, 7: they follow "3, 4" alone


def test_of_equal_agreements_the_latest_is_taken() -> None:
    text = Lookup([1, 2, 5, 1, 2, 6, 1, 2])
    assert text.draft(1).tokens == (6,)


def test_a_lane_drafts_from_its_own_text_too_and_never_past_its_end() -> None:
    text = Lookup([9])
    for token in (1, 2, 3, 1, 2):
        text.push(token)
    assert text.draft(10).tokens == (3, 1, 2)


def test_what_was_never_written_drafts_nothing() -> None:
    assert Lookup([1, 2, 3]).draft(4) == NOTHING
    assert Lookup([]).draft(4) == NOTHING


def test_a_draft_grows_where_drafts_are_right_and_ends_where_they_are_not() -> None:
    drafting = Drafting(8, RowCosts(always=0.2))
    at_first = drafting.length(4, 3)
    assert 0 < at_first < 8
    for _ in range(5):
        drafting.learn(4, accepted=4, tried=4)
    assert drafting.length(4, 3) > at_first
    for _ in range(20):
        drafting.learn(1, accepted=0, tried=1)
    assert drafting.length(1, 3) == 0
    assert drafting.length(4, 3) > at_first, "another kind of match is another matter"


def test_what_was_given_up_is_tried_again_later() -> None:
    drafting = Drafting(8, RowCosts(always=0.2))
    drafting.learn(2, accepted=0, tried=30)
    rounds = 0
    while drafting.length(2, 3) == 0:
        rounds += 1
    assert 20 < rounds < 200


def test_nothing_is_drafted_where_a_row_costs_as_much_as_a_round() -> None:
    drafting = Drafting(8, RowCosts(always=1.0))
    drafting.learn(4, accepted=32, tried=32)
    assert drafting.length(4, 3) == 0


def test_a_rows_cost_is_over_its_part_of_a_plain_round() -> None:
    costs = RowCosts(((3, 1.0), (12, 1.9), (48, 7.6)))
    assert costs.share(3) == pytest.approx(0.3)
    assert costs.share(12) == pytest.approx(1.0)
    assert costs.share(24) == 1.0, "unknown: more rows than were measured"


def test_costs_are_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDT_CACHE", str(tmp_path))
    monkeypatch.delenv("PDT_ROW_COST", raising=False)
    model = open_model()
    first = row_costs(model)
    assert [rows for rows, _ in first.seconds] == [3, 12, 48]
    assert row_costs(model) == first
    (kept,) = (tmp_path / "rows").iterdir()
    kept.write_text("{")
    assert [rows for rows, _ in row_costs(model).seconds] == [3, 12, 48]
    assert row_costs(model) == row_costs(model)
    assert measure(model).seconds


def test_a_cost_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("cheap", "-1", "nan"):
        monkeypatch.setenv("PDT_ROW_COST", text)
        with pytest.raises(UsageError, match="PDT_ROW_COST"):
            row_costs(open_model())


def test_more_drafts_than_can_be_are_refused() -> None:
    for value in ("-1", "65", "many"):
        with pytest.raises(UsageError, match="drafts"):
            settings_from([f"drafts={value}"])
