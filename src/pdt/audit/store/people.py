"""Accounts, one-time invitations and sessions. Tokens are kept as digests, passphrases as scrypt.

Paper: §7.2 (two independent annotators, a distinct third adjudicator).
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from pdt.audit.answers import Role
from pdt.audit.clock import in_days, now, stamp
from pdt.audit.store.audits import open_plan
from pdt.audit.store.schema import InvitationRow, PersonRow, SessionRow
from pdt.errors import AuditRefused

INVITATION_DAYS = 14
SESSION_DAYS = 0.5
SHORTEST_PASSPHRASE, LONGEST_PASSPHRASE = 12, 200
LONGEST_NAME = 60
NOT_VALID = (
    "This invitation is not valid: it is wrong, was used, or is out of date.\n"
    "Ask the operator of the audit for another one."
)


@dataclass(frozen=True)
class Person:
    """Who is asking, and with which session."""

    id: int
    name: str
    roles: frozenset[Role]
    seat: int | None
    form_token: str = ""


def invite(
    session: Session, name: str, roles: Collection[Role], *, replaces: str | None = None
) -> str:
    """An account with an invitation; the token is given out once and not kept.

    An account that is there already gets another invitation: its sessions and older invitations
    end, its votes stay.
    """
    plan = open_plan(session)
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise AuditRefused(f"A name has 1 to {LONGEST_NAME} printed characters.")
    person = session.scalar(select(PersonRow).where(PersonRow.name == name))
    if person is None:
        _check_roles(roles, plan.seats)
        person = PersonRow(name=name, roles=" ".join(sorted(roles)), invited_at=stamp(now()))
        if Role.ANNOTATOR in roles:
            person.seat = _free_seat(session, plan.seats, replaces)
        elif replaces is not None:
            raise AuditRefused("Only an annotator can be replaced, by another annotator.")
        session.add(person)
        session.flush()
    elif person.left_at is not None or replaces is not None or set(roles) - set(_roles(person)):
        raise AuditRefused(
            f"There is an account {name!r} with the roles {person.roles}.\n"
            "Give another name, or the same roles for another invitation."
        )
    _end_access(session, person)
    token = secrets.token_urlsafe(32)
    session.add(
        InvitationRow(digest=_digest(token), person=person.id, ends_at=in_days(INVITATION_DAYS))
    )
    return token


def accept(session: Session, token: str, passphrase: str) -> str:
    """Take up an invitation with a passphrase of one's own; a token for the new session."""
    invitation = valid_invitation(session, token)
    if not SHORTEST_PASSPHRASE <= len(passphrase) <= LONGEST_PASSPHRASE:
        raise AuditRefused(
            f"A passphrase has {SHORTEST_PASSPHRASE} to {LONGEST_PASSPHRASE} characters.",
            status=422,
        )
    person = session.get_one(PersonRow, invitation.person)
    invitation.used_at = stamp(now())
    person.passphrase = _hashed(passphrase)
    return _begin_session(session, person)


def valid_invitation(session: Session, token: str) -> InvitationRow:
    found = session.get(InvitationRow, _digest(token))
    if found is None or found.used_at is not None or found.ends_at < stamp(now()):
        raise AuditRefused(NOT_VALID, status=403)
    return found


def sign_in(session: Session, name: str, passphrase: str) -> str:
    """A token for a new session."""
    person = session.scalar(select(PersonRow).where(PersonRow.name == " ".join(name.split())))
    known = person is not None and person.left_at is None and person.passphrase is not None
    stored = person.passphrase if known and person is not None else _NOBODY
    # A name that is not there takes as long as one that is.
    right = _is_right(passphrase, stored or _NOBODY)
    if person is None or not known or not right:
        raise AuditRefused("Name and passphrase do not fit together.", status=403)
    return _begin_session(session, person)


def sign_out(session: Session, token: str) -> None:
    found = session.get(SessionRow, _digest(token))
    if found is not None:
        session.delete(found)


def person_of(session: Session, token: str) -> Person | None:
    """Whose session it is; None where it has ended."""
    found = session.get(SessionRow, _digest(token))
    if found is None or found.ends_at < stamp(now()):
        return None
    person = session.get_one(PersonRow, found.person)
    return None if person.left_at is not None else as_person(person, found.form_token)


def as_person(row: PersonRow, form_token: str = "") -> Person:
    return Person(row.id, row.name, frozenset(_roles(row)), row.seat, form_token)


def _roles(row: PersonRow) -> list[Role]:
    return [Role(name) for name in row.roles.split()]


def _check_roles(roles: Collection[Role], seats: int) -> None:
    if not roles:
        raise AuditRefused("An account needs a role: annotator, adjudicator or operator.")
    if Role.OPERATOR in roles and len(roles) > 1:
        raise AuditRefused("An operator knows the conditions, and so judges nothing.")
    if {Role.ANNOTATOR, Role.ADJUDICATOR} <= set(roles) and seats == 2:
        raise AuditRefused(
            "Nobody adjudicates what they judged, and with two seats each annotator judges all.\n"
            "Invite a third person as adjudicator."
        )


def _free_seat(session: Session, seats: int, replaces: str | None) -> int:
    if replaces is not None:
        old = session.scalar(select(PersonRow).where(PersonRow.name == replaces))
        if old is None or old.seat is None or old.left_at is not None:
            raise AuditRefused(f"There is no annotator {replaces!r} to replace.")
        seat, old.left_at, old.seat = old.seat, stamp(now()), None
        _end_access(session, old)
        return seat
    taken = set(session.scalars(select(PersonRow.seat).where(PersonRow.seat.is_not(None))))
    free = [seat for seat in range(seats) if seat not in taken]
    if not free:
        raise AuditRefused(
            f"All {seats} seats are taken.\n"
            "Give --replaces NAME to hand on what is left of somebody's items."
        )
    return free[0]


def _end_access(session: Session, person: PersonRow) -> None:
    session.execute(
        update(InvitationRow)
        .where(InvitationRow.person == person.id, InvitationRow.used_at.is_(None))
        .values(used_at=stamp(now()))
    )
    for found in session.scalars(select(SessionRow).where(SessionRow.person == person.id)):
        session.delete(found)


def _begin_session(session: Session, person: PersonRow) -> str:
    token = secrets.token_urlsafe(32)
    session.add(
        SessionRow(
            digest=_digest(token),
            person=person.id,
            form_token=secrets.token_urlsafe(24),
            ends_at=in_days(SESSION_DAYS),
        )
    )
    return token


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _hashed(passphrase: str, salt: bytes | None = None) -> str:
    salt = salt or secrets.token_bytes(16)
    found = hashlib.scrypt(passphrase.encode(), salt=salt, n=2**14, r=8, p=1)
    return f"{salt.hex()}${found.hex()}"


def _is_right(passphrase: str, stored: str) -> bool:
    salt = bytes.fromhex(stored.partition("$")[0])
    given = passphrase[: LONGEST_PASSPHRASE + 1]
    return hmac.compare_digest(_hashed(given, salt), stored)


_NOBODY = f"{'00' * 16}${'00' * 64}"
