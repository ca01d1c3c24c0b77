"""§7.2: every decision in a blinded queue, two annotators, a third who adjudicates, final rates."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pdt.audit.adjudication import next_dispute, settle
from pdt.audit.answers import Answer, Purpose, Role
from pdt.audit.blinding import SOONEST, Blind, deal
from pdt.audit.closing import closed_form
from pdt.audit.decisions import Decision, decided
from pdt.audit.judging import cast, next_item, take_back
from pdt.audit.opening import AuditAsked
from pdt.audit.queue import Claim, Queue
from pdt.audit.store.chain import Vote, read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.people import invite
from pdt.audit.tables import AUDIT, adjudicated_lines, drawn_raw
from pdt.audit.training import read_training
from pdt.errors import AuditRefused, UsageError
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.measures.longform import one_spaced
from pdt.evaluation.measures.ownership import leakage, owner_recall
from tests.support.audits import (
    KEY,
    VERDICT,
    invited,
    judge_all,
    small_audit,
    small_queue,
    small_raw,
    team,
    truth,
)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return small_audit(tmp_path / "a.db")


@pytest.mark.paper("§7.2")
def test_every_condition_lane_and_fact_is_an_item_with_its_hard_negative() -> None:
    queue = small_queue(2)
    keys = {
        (text.record_id, text.condition, text.lane, item.fact_id, item.claim)
        for item in queue.items
        for text in [queue.texts[item.text]]
    }
    assert len(keys) == len(queue.items) == 2 * 2 * 3 * 4 * 2
    assert sum(item.claim is Claim.HARD_NEGATIVE for item in queue.items) == len(queue.items) // 2
    assert {item.weight for item in queue.items} == {1.0}


def test_a_sample_is_of_whole_documents_and_nodes_and_keeps_its_weights() -> None:
    asked = AuditAsked(documents=2, nodes=1, conditions=("oracle",))
    queue = small_queue(8, asked)
    assert len(queue.plan.documents) == 2
    assert queue == small_queue(8, asked)
    assert queue.plan.documents != small_queue(8, replace(asked, seed=1)).plan.documents
    # Four nodes own one fact each: an item stands for 4 documents times 4 nodes.
    assert {item.weight for item in queue.items} == {16.0}
    assert len(queue.items) == 2 * 3 * 1 * 2
    with pytest.raises(UsageError, match="has 8"):
        small_queue(8, AuditAsked(documents=9))
    with pytest.raises(UsageError, match="no condition 'nonsense'"):
        small_queue(8, AuditAsked(conditions=("nonsense",)))


@pytest.mark.paper("§7.2")
def test_seats_see_other_orders_and_other_ids_and_some_items_return() -> None:
    queue, blind = small_queue(8), Blind(KEY)
    numbers = [item.number for item in queue.items]
    first, second = (deal(blind, queue.plan, numbers, seat) for seat in (0, 1))
    assert not {row.ticket for row in first} & {row.ticket for row in second}
    once = [
        [row.item for row in seat if row.purpose is Purpose.JUDGMENT] for seat in (first, second)
    ]
    assert sorted(once[0]) == sorted(once[1]) == numbers
    assert once[0] != once[1] != numbers
    again = [row.item for row in first if row.purpose is Purpose.REPEAT]
    assert len(again) == round(len(numbers) * 0.05)
    places: dict[int, list[int]] = {}
    for place, row in enumerate(first):
        places.setdefault(row.item, []).append(place)
    assert all(places[item][1] - places[item][0] >= len(numbers) * SOONEST for item in again)


def test_with_more_seats_every_item_is_judged_from_two_of_them() -> None:
    queue, blind = small_queue(8, AuditAsked(seats=4)), Blind(KEY)
    numbers = [item.number for item in queue.items]
    seen: dict[int, int] = {}
    for seat in range(4):
        for row in deal(blind, queue.plan, numbers, seat):
            if row.purpose is Purpose.JUDGMENT:
                seen[row.item] = seen.get(row.item, 0) + 1
    assert seen == dict.fromkeys(numbers, 2)


@pytest.mark.paper("§7.2")
def test_a_third_person_settles_what_two_judged_differently_and_nobody_their_own(
    database: Database,
) -> None:
    ann, bob, cy = team(database)
    judge_all(database, ann)
    judge_all(database, bob, slips=0.2, seed=3)
    with database.reading() as session:
        votes = read_votes(session)
    said: dict[int, set[Answer | None]] = {}
    for vote in votes:
        if vote.purpose is Purpose.JUDGMENT:
            said.setdefault(vote.item, set()).add(vote.answer)
    differ = {item for item, answers in said.items() if len(answers) > 1}
    checked = {item for item in said if Blind(KEY).is_checked(item, 0.05)}
    judge_all(database, cy)
    with database.reading() as session:
        votes = read_votes(session)
    settled = {vote.item for vote in votes if vote.purpose is Purpose.ADJUDICATION}
    assert settled == differ | checked and differ - checked and checked - differ
    with database.writing() as session:
        assert next_dispute(session, ann) is None


def test_an_annotator_of_other_items_may_adjudicate_and_never_what_they_judged(
    tmp_path: Path,
) -> None:
    database = small_audit(tmp_path / "three.db", 1, AuditAsked(seats=3))
    both = invited(database, "Ann", Role.ANNOTATOR, Role.ADJUDICATOR)
    others = [invited(database, name, Role.ANNOTATOR) for name in ("Bob", "Dora")]
    for number, person in enumerate((both, *others)):
        judge_all(database, person, slips=0.3, seed=number)
    settled = 0
    while True:
        with database.writing() as session:
            shown = next_dispute(session, both)
            if shown is None:
                break
            assert settle(session, both, shown.ticket, shown.showing, *truth(shown), "")
            settled += 1
    with database.reading() as session:
        votes = read_votes(session)
    judged = {v.item for v in votes if v.person == both.id and v.purpose is Purpose.JUDGMENT}
    mine = {v.item for v in votes if v.purpose is Purpose.ADJUDICATION}
    assert len(mine) == settled > 0 and not judged & mine


def test_with_two_seats_an_annotator_cannot_be_the_adjudicator(database: Database) -> None:
    with database.writing() as session, pytest.raises(AuditRefused, match="third person"):
        invite(session, "Ann", [Role.ANNOTATOR, Role.ADJUDICATOR])


@pytest.mark.paper("§7.2")
def test_the_training_round_comes_first_and_a_failed_one_comes_again(tmp_path: Path) -> None:
    database = small_audit(tmp_path / "trained.db", 1, training=read_training())
    ann = invited(database, "Ann", Role.ANNOTATOR)
    rounds = set()
    for _ in range(20):
        with database.writing() as session:
            shown = next_item(session, ann)
            assert shown is not None and shown.training
            rounds.add(shown.round)
            cast(session, ann, shown.ticket, shown.showing, "cannot tell", None, "")
    with database.writing() as session:
        shown = next_item(session, ann)
    assert shown is not None and shown.training and shown.round == 1 and rounds == {0}
    assert shown.feedback is not None
    assert judge_all(database, ann, most=20) == 20
    with database.writing() as session:
        shown = next_item(session, ann)
    assert shown is not None and not shown.training


def test_an_answer_sent_twice_is_counted_once_and_three_can_be_taken_back(
    database: Database,
) -> None:
    ann = invited(database, "Ann", Role.ANNOTATOR)
    judge_all(database, ann, most=8)
    with database.writing() as session:
        shown = next_item(session, ann)
        assert shown is not None
        assert cast(session, ann, shown.ticket, shown.showing, "no", None, "")
        assert not cast(session, ann, shown.ticket, shown.showing, "no", None, "")
    mine = (Purpose.JUDGMENT, Purpose.REPEAT)
    for _ in range(3):
        with database.writing() as session:
            take_back(session, ann, mine)
    with database.writing() as session, pytest.raises(AuditRefused, match="nothing to take back"):
        take_back(session, ann, mine)
    with database.writing() as session:
        again = next_item(session, ann)
        assert again is not None and again.done == 3
        read_votes(session)


@pytest.mark.parametrize(
    ("answer", "sentence", "match"),
    [
        ("maybe", None, "no answer"),
        ("yes", None, "marks the sentence"),
        ("yes", 99, "marks the sentence"),
        ("no", 0, "rests on no sentence"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_with_what_is_missing(
    database: Database, answer: str, sentence: int | None, match: str
) -> None:
    ann = invited(database, "Ann", Role.ANNOTATOR)
    with database.writing() as session:
        shown = next_item(session, ann)
    assert shown is not None
    with database.writing() as session, pytest.raises(AuditRefused, match=match):
        cast(session, ann, shown.ticket, shown.showing, answer, sentence, "")


@pytest.mark.paper("§7.2", "Table 3")
def test_final_rates_are_those_of_the_adjudicated_judgments(database: Database) -> None:
    ann, bob, cy = team(database)
    judge_all(database, ann, slips=0.1, seed=1)
    judge_all(database, bob, slips=0.1, seed=2)
    with database.writing() as session, pytest.raises(AuditRefused, match="adjudications are mis"):
        closed_form(session, small_raw(), VERDICT)
    judge_all(database, cy)
    with database.writing() as session:
        audit = closed_form(session, small_raw(), VERDICT)
    assert {row.screen for row in audit.judgments} == {AUDIT}
    decisions = decided(audit.queue, Blind(KEY), audit.votes)
    # By hand: what the third said where there is one, else what both said.
    said = {
        (text.condition, text.record_id, text.lane, item.fact_id): decisions[item.number]
        for item in audit.queue.items
        for text in [audit.queue.texts[item.text]]
        if item.claim is Claim.STATEMENT
    }
    documents = {one.record_id: one for one in audit_documents(audit.queue)}
    for line in audit.judgments:
        one = documents[line.record_id]
        owned = [
            said[line.condition, line.record_id, fact.owner_lane, fact.id] for fact in one.facts
        ]
        found = [(d.third or d.first).answer is Answer.YES for d in owned]
        assert owner_recall(one, line.judged, (0, 1, 2)) == sum(found) / len(found)
    assert any(d.first.answer != d.second.answer for d in decisions.values())


def audit_documents(queue: Queue) -> list[HeldOutDocument]:
    return drawn_raw(queue, small_raw()).documents


def test_the_marked_sentence_is_where_a_fact_stands(database: Database) -> None:
    for person in team(database):
        judge_all(database, person)
    with database.writing() as session:
        audit = closed_form(session, small_raw(), VERDICT)
    wrote = {(row.condition, row.record_id): row for row in small_raw().written}
    documents = {one.record_id: one for one in small_raw().documents}
    found = 0
    for line in audit.judgments:
        row, facts = wrote[line.condition, line.record_id], documents[line.record_id].facts
        assert line.judged.place_KF is not None
        for lane, places in zip(row.lanes, line.judged.place_KF, strict=True):
            for fact, place in zip(facts, places, strict=True):
                text = one_spaced(lane.text)
                assert (place < 0) == (fact.statement not in text)
                assert place < 0 or text[place:].startswith(fact.statement)
                found += place >= 0
    assert found


def test_cannot_tell_counts_against_the_model() -> None:
    queue, raw = small_queue(1, AuditAsked(conditions=("oracle",))), small_raw(1)
    unsure = Vote(
        number=1, ticket="t", person=1, purpose=Purpose.JUDGMENT, item=0, showing=0,
        answer=Answer.CANNOT_TELL, sentence=None, remark="", seconds=None,
        at=datetime(2026, 11, 18, tzinfo=UTC), source="page", previous="0" * 64,
    )  # fmt: skip
    decisions = {
        item.number: Decision(item.number, (0, 1), unsure, unsure, None) for item in queue.items
    }
    sample = drawn_raw(queue, raw)
    (line,) = adjudicated_lines(queue, decisions, sample)
    one = sample.documents[0]
    assert owner_recall(one, line.judged, (0, 1, 2)) == 0
    assert leakage(one, line.judged, (0, 1, 2)) == 1
    assert all(cell for lane in line.judged.hard_negative_KF for cell in lane)
