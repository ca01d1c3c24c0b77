"""How far an audit has come: numbers of items and people, never an answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from pdt.audit.adjudication import waiting_items
from pdt.audit.answers import Purpose, Role
from pdt.audit.judging import is_trained
from pdt.audit.store.audits import OpenAudit, audit_row, read_audit
from pdt.audit.store.chain import head_of
from pdt.audit.store.people import Person, as_person
from pdt.audit.store.schema import ItemRow, PersonRow, TicketRow
from pdt.contract import Contract, Index, Line, Sha256


class PersonStatus(Contract):
    """One account."""

    name: Line
    roles: tuple[Role, ...]
    done: Index
    total: Index | None
    """Of a seat's items, those that return included; none without a seat."""
    state: Line


class AuditStatus(Contract):
    """All that an operator sees while people judge."""

    name: Line
    closed_at: Line | None
    items: Index
    decided: Index
    waiting: Index
    """For an adjudicator."""
    seats_free: Index
    people: tuple[PersonStatus, ...]
    votes: Index
    head: Sha256
    """The last link of the chain: note it elsewhere, and nothing before it can change unseen."""


def status_of(session: Session) -> AuditStatus:
    audit, row = read_audit(session), audit_row(session)
    votes, head = head_of(session)
    items = session.scalar(select(func.count()).select_from(ItemRow)) or 0
    people = list(session.scalars(select(PersonRow).order_by(PersonRow.id)))
    waiting = waiting_items(session)
    judged = _items_judged_twice(session)
    return AuditStatus(
        name=audit.plan.name,
        closed_at=row.closed_at,
        items=items,
        decided=judged - waiting,
        waiting=waiting,
        seats_free=audit.plan.seats - sum(person.seat is not None for person in people),
        people=tuple(_person(session, audit, person) for person in people),
        votes=votes,
        head=head,
    )


def _items_judged_twice(session: Session) -> int:
    twice = (
        select(TicketRow.item)
        .where(TicketRow.purpose == Purpose.JUDGMENT, TicketRow.answer.is_not(None))
        .group_by(TicketRow.item)
        .having(func.count() == 2)
        .subquery()
    )
    return session.scalar(select(func.count()).select_from(twice)) or 0


def _person(session: Session, audit: OpenAudit, row: PersonRow) -> PersonStatus:
    person = as_person(row)
    if row.left_at is not None:
        state = "has handed on"
    elif row.passphrase is None:
        state = "invited"
    elif Role.OPERATOR in person.roles:
        state = "–"
    else:
        state = "judging" if is_trained(session, audit, person) else "in training"
    counts = _counts(session, row)
    if state == "judging" and row.seat is not None and not counts[False]:
        state = "finished"
    return PersonStatus(
        name=row.name,
        roles=tuple(sorted(person.roles)),
        done=counts[True],
        total=None if row.seat is None else counts[True] + counts[False],
        state=state,
    )


def _counts(session: Session, row: PersonRow) -> Mapping[bool, int]:
    """Tickets with and without an answer: of the seat, or settled by the person."""
    mine = (
        TicketRow.seat == row.seat
        if row.seat is not None
        else (TicketRow.person == row.id) & (TicketRow.purpose == Purpose.ADJUDICATION)
    )
    answered = TicketRow.answer.is_not(None)
    found = session.execute(
        select(answered, func.count()).select_from(TicketRow).where(mine).group_by(answered)
    )
    return {True: 0, False: 0} | {bool(key): count for key, count in found}


@dataclass(frozen=True)
class OwnProgress:
    """What a person sees of their own work."""

    done: int
    total: int
    waiting: int
    trained: bool
    examples: int
    pass_mark: int
    closed: bool


def own_progress(session: Session, person: Person) -> OwnProgress:
    audit = read_audit(session)
    row = session.get_one(PersonRow, person.id)
    counts = _counts(session, row)
    return OwnProgress(
        counts[True],
        counts[True] + counts[False],
        waiting_items(session) if Role.ADJUDICATOR in person.roles else 0,
        is_trained(session, audit, person),
        len(audit.training.examples),
        audit.plan.pass_mark,
        audit.closed_at is not None,
    )
