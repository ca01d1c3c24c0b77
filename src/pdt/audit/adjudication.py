"""Adjudication: a third person settles what two annotators judged differently.

With them go some items on which the two agree, drawn before anybody voted. Whoever judged an item,
now or before a seat was handed on, never adjudicates it.

Paper: §7.2.
"""

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from pdt.audit.answers import Answer, Purpose
from pdt.audit.judging import OtherVote, Shown, cast, next_example, show
from pdt.audit.store.audits import OpenAudit, still_open
from pdt.audit.store.people import Person
from pdt.audit.store.schema import ItemRow, TicketRow, VoteRow
from pdt.errors import AuditRefused

SETTLED = "This item was settled or changed in the meantime.\nGo on with the next."


def next_dispute(session: Session, person: Person) -> Shown | None:
    """What an adjudicator settles next, with both votes and no names; None when nothing waits."""
    audit = still_open(session)
    training = next_example(session, audit, person)
    if training is not None:
        return training
    # Two adjudicators who work at once begin at opposite ends.
    place = ItemRow.place.desc() if person.id % 2 else ItemRow.place
    item = session.scalar(
        select(ItemRow).where(_waits(), _not_judged_by(person)).order_by(place).limit(1)
    )
    if item is None:
        return None
    ticket = _ticket(session, audit, person, item.number)
    done = _settled_by(session, person)
    waiting = _waiting(session, person)
    return show(
        session,
        audit,
        person,
        ticket,
        done=done,
        total=done + waiting,
        votes=_both_votes(session, audit, item.number),
    )


def settle(
    session: Session,
    person: Person,
    ticket_id: str,
    showing: int,
    answer: str,
    sentence: int | None,
    remark: str,
) -> bool:
    """Count an adjudicator's answer, if the item still waits for one."""
    ticket = session.get(TicketRow, ticket_id)
    if (
        ticket is not None
        and ticket.purpose == Purpose.ADJUDICATION
        and showing == ticket.showing
        and session.scalar(
            select(ItemRow.number).where(
                ItemRow.number == ticket.item, _waits(), _not_judged_by(person)
            )
        )
        is None
    ):
        raise AuditRefused(SETTLED)
    return cast(session, person, ticket_id, showing, answer, sentence, remark)


def waiting_items(session: Session) -> int:
    """Items that wait for any adjudicator."""
    return session.scalar(select(func.count()).select_from(ItemRow).where(_waits())) or 0


def _waits() -> ColumnElement[bool]:
    """Two answers, which differ or are drawn for a check, and none of an adjudicator."""
    first, second, third = aliased(TicketRow), aliased(TicketRow), aliased(TicketRow)
    judged = exists().where(
        first.item == ItemRow.number,
        second.item == ItemRow.number,
        first.purpose == Purpose.JUDGMENT,
        second.purpose == Purpose.JUDGMENT,
        first.seat < second.seat,
        first.answer.is_not(None),
        second.answer.is_not(None),
        or_(first.answer != second.answer, ItemRow.checked),
    )
    settled = exists().where(
        third.item == ItemRow.number,
        third.purpose == Purpose.ADJUDICATION,
        third.answer.is_not(None),
    )
    return and_(judged, ~settled)


def _not_judged_by(person: Person) -> ColumnElement[bool]:
    vote = aliased(VoteRow)
    seat = aliased(TicketRow)
    kinds = (Purpose.JUDGMENT, Purpose.REPEAT)
    voted = exists().where(
        vote.item == ItemRow.number, vote.person == person.id, vote.purpose.in_(kinds)
    )
    dealt = exists().where(
        seat.item == ItemRow.number,
        seat.purpose == Purpose.JUDGMENT,
        seat.seat == person.seat,
    )
    return and_(~voted, ~dealt) if person.seat is not None else ~voted


def _ticket(session: Session, audit: OpenAudit, person: Person, item: int) -> TicketRow:
    name = audit.blind.ticket(f"person {person.id}", Purpose.ADJUDICATION, item)
    found = session.get(TicketRow, name)
    if found is None:
        found = TicketRow(
            id=name,
            purpose=Purpose.ADJUDICATION,
            item=item,
            person=person.id,
            round=0,
            position=0,
            showing=0,
        )
        session.add(found)
        session.flush()
    return found


def _both_votes(session: Session, audit: OpenAudit, item: int) -> tuple[OtherVote, ...]:
    rows = session.execute(
        select(TicketRow.seat, VoteRow.answer, VoteRow.sentence, VoteRow.remark)
        .join(
            VoteRow,
            and_(VoteRow.ticket == TicketRow.id, VoteRow.showing == TicketRow.showing - 1),
        )
        .where(TicketRow.item == item, TicketRow.purpose == Purpose.JUDGMENT)
    ).all()
    # Always in another order, so that nobody learns to know the first from the second.
    order = sorted(rows, key=lambda row: audit.blind.fraction("shown", item, row.seat))
    return tuple(OtherVote(Answer(row.answer), row.sentence, row.remark) for row in order)


def _settled_by(session: Session, person: Person) -> int:
    return (
        session.scalar(
            select(func.count())
            .select_from(TicketRow)
            .where(
                TicketRow.person == person.id,
                TicketRow.purpose == Purpose.ADJUDICATION,
                TicketRow.answer.is_not(None),
            )
        )
        or 0
    )


def _waiting(session: Session, person: Person) -> int:
    waits = select(func.count()).select_from(ItemRow).where(_waits(), _not_judged_by(person))
    return session.scalar(waits) or 0
