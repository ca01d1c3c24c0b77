"""What a person is shown next, and what becomes of the answer.

Every step is one transaction. An answer names its ticket and its showing, so that a double click, a
reload or a second sending is seen as what it is and counted once.

Paper: §7.2.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from pdt.audit.answers import Answer, Purpose, Role, checked_answer
from pdt.audit.clock import now, stamp
from pdt.audit.queue import Paragraphs
from pdt.audit.store.audits import OpenAudit, still_open
from pdt.audit.store.chain import Vote, add_vote, head_of
from pdt.audit.store.people import Person
from pdt.audit.store.schema import ItemRow, TextRow, TicketRow, VoteRow
from pdt.audit.training import Example
from pdt.errors import AuditRefused

STEPS_BACK = 3
"""Answers that can be taken back: a slip, not a second thought when an item returns."""
NOT_YOURS = "There is no such item for you.\nGo on with the one that is shown."
PACE_OF, PACE_WITHIN = 20, timedelta(minutes=15)


@dataclass(frozen=True)
class OtherVote:
    """What an adjudicator sees of an annotator's vote: everything but who."""

    answer: Answer
    sentence: int | None
    remark: str


@dataclass(frozen=True)
class Feedback:
    """How the last example of the training went."""

    example: Example
    said: Answer

    @property
    def right(self) -> bool:
        return self.said is self.example.answer


@dataclass(frozen=True)
class Shown:
    """All that a page holds of one decision."""

    ticket: str
    showing: int
    training: bool
    round: int
    """Of the training: above 0 when a round was not passed."""
    words: str
    paragraphs: Paragraphs
    done: int
    total: int
    pace: float | None
    """Answers a minute."""
    undo: bool
    feedback: Feedback | None = None
    votes: tuple[OtherVote, ...] = field(default=())


def cast(
    session: Session,
    person: Person,
    ticket_id: str,
    showing: int,
    answer: str,
    sentence: int | None,
    remark: str,
) -> bool:
    """Count an answer from the page; False when it had been counted before."""
    audit = still_open(session)
    ticket = session.get(TicketRow, ticket_id)
    if ticket is None or not _is_theirs(ticket, person):
        raise AuditRefused(NOT_YOURS, status=404)
    if showing < ticket.showing:
        return False
    if showing > ticket.showing or ticket.answer is not None:
        raise AuditRefused("This answer is for another showing of the item.\nGo on with the next.")
    if Purpose(ticket.purpose) is not Purpose.TRAINING and not is_trained(session, audit, person):
        raise AuditRefused("The training round comes first.", status=403)
    shown_at = ticket.shown_at
    seconds = None
    if shown_at is not None:
        seconds = round((now() - datetime.fromisoformat(shown_at)).total_seconds(), 3)
    count_vote(session, audit, person, ticket, answer, sentence, remark, seconds, "page")
    return True


def count_vote(
    session: Session,
    audit: OpenAudit,
    person: Person,
    ticket: TicketRow,
    answer: str,
    sentence: int | None,
    remark: str,
    seconds: float | None,
    source: str,
) -> None:
    """Check an answer against what its ticket shows, and add it to the chain."""
    sentences = sum(map(len, paragraphs_of_ticket(session, audit, ticket)))
    said, sentence, remark = checked_answer(answer, sentence, remark, sentences=sentences)
    _append(session, person, ticket, said, sentence, remark, seconds, source)


def take_back(session: Session, person: Person, purposes: tuple[Purpose, ...]) -> None:
    """Withdraw the person's last answer; the item is shown again."""
    still_open(session)
    answers = session.scalars(
        select(VoteRow)
        .where(
            VoteRow.person == person.id,
            VoteRow.answer.is_not(None),
            VoteRow.purpose.in_([str(purpose) for purpose in purposes]),
        )
        .order_by(VoteRow.number.desc())
        .limit(STEPS_BACK)
    )
    for vote in answers:
        ticket = session.get_one(TicketRow, vote.ticket)
        if ticket.showing != vote.showing + 1:
            continue  # taken back before
        if not _is_theirs(ticket, person):
            break
        if ticket.purpose == Purpose.JUDGMENT and adjudicated(session, ticket.item):
            raise AuditRefused("This answer can no longer be taken back.")
        _append(session, person, ticket, None, None, "", None, "page")
        return
    raise AuditRefused(f"There is nothing to take back: at most the last {STEPS_BACK} answers.")


def adjudicated(session: Session, item: int) -> bool:
    return (
        session.scalar(
            select(TicketRow.id).where(
                TicketRow.item == item,
                TicketRow.purpose == Purpose.ADJUDICATION,
                TicketRow.answer.is_not(None),
            )
        )
        is not None
    )


def next_item(session: Session, person: Person) -> Shown | None:
    """What an annotator judges next: examples first, then the seat's order; None at the end."""
    audit = still_open(session)
    training = next_example(session, audit, person)
    if training is not None:
        return training
    mine = select(TicketRow).where(TicketRow.seat == person.seat)
    ticket = session.scalar(
        mine.where(TicketRow.answer.is_(None)).order_by(TicketRow.position).limit(1)
    )
    if ticket is None:
        return None
    total = _count(session, TicketRow.seat == person.seat)
    left = _count(session, TicketRow.seat == person.seat, TicketRow.answer.is_(None))
    return show(session, audit, person, ticket, done=total - left, total=total)


def show(
    session: Session,
    audit: OpenAudit,
    person: Person,
    ticket: TicketRow,
    *,
    done: int,
    total: int,
    feedback: Feedback | None = None,
    votes: tuple[OtherVote, ...] = (),
) -> Shown:
    ticket.shown_at = stamp(now())
    training = ticket.purpose == Purpose.TRAINING
    if training:
        words = audit.training.examples[ticket.item].words
    else:
        words = session.get_one(ItemRow, ticket.item).words
    return Shown(
        ticket.id,
        ticket.showing,
        training,
        ticket.round,
        words,
        paragraphs_of_ticket(session, audit, ticket),
        done,
        total,
        _pace(session, person),
        undo=not training and done > 0,
        feedback=feedback,
        votes=votes,
    )


def next_example(session: Session, audit: OpenAudit, person: Person) -> Shown | None:
    """The next example of the training round; None once a round was passed."""
    if is_trained(session, audit, person):
        return None
    round_, rows = _round(session, person)
    if not rows or all(row.answer is not None for row in rows):
        round_ += 1 if rows else 0
        rows = _deal_round(session, audit, person, round_)
    ticket = next(row for row in rows if row.answer is None)
    done = sum(row.answer is not None for row in rows)
    feedback = _feedback(session, audit, person)
    return show(session, audit, person, ticket, done=done, total=len(rows), feedback=feedback)


def is_trained(session: Session, audit: OpenAudit, person: Person) -> bool:
    """Has the person passed a round? The last one is looked at: none follows a passed one."""
    rows = session.execute(
        select(TicketRow.item, TicketRow.answer)
        .where(TicketRow.person == person.id, TicketRow.purpose == Purpose.TRAINING)
        .order_by(TicketRow.round.desc())
        .limit(len(audit.training.examples))
    ).all()
    if not rows or any(answer is None for _, answer in rows):
        return False
    right = sum(answer == audit.training.examples[item].answer for item, answer in rows)
    return right >= audit.plan.pass_mark


def paragraphs_of_ticket(session: Session, audit: OpenAudit, ticket: TicketRow) -> Paragraphs:
    if ticket.purpose == Purpose.TRAINING:
        return audit.training.examples[ticket.item].paragraphs
    item = session.get_one(ItemRow, ticket.item)
    stored = json.loads(session.get_one(TextRow, item.text).paragraphs)
    return tuple(tuple(paragraph) for paragraph in stored)


def _round(session: Session, person: Person) -> tuple[int, list[TicketRow]]:
    """The person's newest round of examples."""
    rows = list(
        session.scalars(
            select(TicketRow)
            .where(TicketRow.person == person.id, TicketRow.purpose == Purpose.TRAINING)
            .order_by(TicketRow.round, TicketRow.position)
        )
    )
    newest = max((row.round for row in rows), default=0)
    return newest, [row for row in rows if row.round == newest]


def _deal_round(session: Session, audit: OpenAudit, person: Person, round_: int) -> list[TicketRow]:
    order = sorted(
        range(len(audit.training.examples)),
        key=lambda number: audit.blind.fraction("training", person.id, round_, number),
    )
    rows = [
        TicketRow(
            id=audit.blind.ticket(f"person {person.id}", Purpose.TRAINING, number, round_),
            purpose=Purpose.TRAINING,
            item=number,
            person=person.id,
            round=round_,
            position=position,
            showing=0,
        )
        for position, number in enumerate(order)
    ]
    session.add_all(rows)
    session.flush()
    return rows


def _feedback(session: Session, audit: OpenAudit, person: Person) -> Feedback | None:
    vote = session.scalar(
        select(VoteRow).where(VoteRow.person == person.id).order_by(VoteRow.number.desc()).limit(1)
    )
    if vote is None or vote.purpose != Purpose.TRAINING or vote.answer is None:
        return None
    return Feedback(audit.training.examples[vote.item], Answer(vote.answer))


def _is_theirs(ticket: TicketRow, person: Person) -> bool:
    if ticket.purpose in (Purpose.JUDGMENT, Purpose.REPEAT):
        return Role.ANNOTATOR in person.roles and ticket.seat == person.seat
    return ticket.person == person.id


def _append(
    session: Session,
    person: Person,
    ticket: TicketRow,
    answer: Answer | None,
    sentence: int | None,
    remark: str,
    seconds: float | None,
    source: str,
) -> None:
    number, previous = head_of(session)
    vote = Vote(
        number=number + 1,
        ticket=ticket.id,
        person=person.id,
        purpose=Purpose(ticket.purpose),
        item=ticket.item,
        showing=ticket.showing,
        answer=answer,
        sentence=sentence,
        remark=remark,
        seconds=seconds,
        at=now(),
        source=source,
        previous=previous,
    )
    add_vote(session, ticket, vote)


def _count(session: Session, *where: object) -> int:
    return session.scalar(select(func.count()).select_from(TicketRow).where(*where)) or 0  # type: ignore[arg-type]


def _pace(session: Session, person: Person) -> float | None:
    """Answers a minute over the last few; None until there are enough of one sitting."""
    since = stamp(now() - PACE_WITHIN)
    times = list(
        session.scalars(
            select(VoteRow.at)
            .where(VoteRow.person == person.id, VoteRow.answer.is_not(None), VoteRow.at > since)
            .order_by(VoteRow.number.desc())
            .limit(PACE_OF)
        )
    )
    if len(times) < 5:
        return None
    newest, oldest = (datetime.fromisoformat(times[n]) for n in (0, -1))
    minutes = (newest - oldest).total_seconds() / 60
    return (len(times) - 1) / minutes if minutes > 0 else None
