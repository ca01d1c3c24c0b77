"""Votes: only ever added, each sealed into the next, so that a later change is found.

The first link is the seal of the queue. Whoever notes the last digest, which `pdt audit status`
prints, can tell later that nothing before it was changed or taken out.

Paper: §7.2.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import AwareDatetime, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from pdt.audit.answers import Answer, Purpose
from pdt.audit.store.schema import AuditRow, TicketRow, VoteRow
from pdt.contract import Contract, Index, Line, Sha256
from pdt.errors import ContractBroken
from pdt.provenance import sha256_json


class Vote(Contract):
    """A line of votes.jsonl: one answer, or its withdrawal."""

    number: Annotated[int, Field(ge=1)]
    """Its place in the chain."""
    ticket: Line
    """The opaque id of what was shown."""
    person: Index
    """The account; people.jsonl says its roles, never a name."""
    purpose: Purpose
    item: Index
    """Of the queue, or of the training examples."""
    showing: Index
    """How many votes the ticket had before."""
    answer: Answer | None
    """None withdraws the vote before it on the same ticket."""
    sentence: Index | None
    """The sentence that states or contradicts the claim."""
    remark: str
    seconds: float | None
    """From showing to answer."""
    at: AwareDatetime
    source: Line
    """page, or the format of the file it came back in."""
    previous: Sha256
    """The digest of the vote before it, or the seal of the queue."""

    @property
    def digest(self) -> str:
        return sha256_json(self.model_dump(mode="json"))


def head_of(session: Session) -> tuple[int, str]:
    """How many votes there are, and the digest that the next one seals."""
    last = session.execute(
        select(VoteRow.number, VoteRow.digest).order_by(VoteRow.number.desc()).limit(1)
    ).first()
    if last is None:
        return 0, session.execute(select(AuditRow.seal)).scalar_one()
    return last.number, last.digest


def add_vote(session: Session, ticket: TicketRow, vote: Vote) -> None:
    """Add one vote that was made for the head of this transaction."""
    values = vote.model_dump(mode="json")
    session.add(VoteRow(**values, digest=vote.digest))
    ticket.answer = vote.answer
    ticket.showing = vote.showing + 1
    session.flush()


def read_votes(session: Session) -> list[Vote]:
    """Every vote in order, after the chain was followed."""
    rows = list(session.scalars(select(VoteRow).order_by(VoteRow.number)))
    votes = [vote_of(row) for row in rows]
    seal = session.execute(select(AuditRow.seal)).scalar_one()
    follow_chain(votes, seal, "The database")
    for row, vote in zip(rows, votes, strict=True):
        if row.digest != vote.digest:
            raise _broken("The database", vote.number, "has been changed")
    return votes


def vote_of(row: VoteRow) -> Vote:
    return Vote.model_validate({name: getattr(row, name) for name in Vote.model_fields})


def follow_chain(votes: Iterable[Vote], seal: str, where: str) -> str:
    """The last digest; a vote that does not follow the one before it is refused."""
    last, shown = seal, dict[str, int]()
    for number, vote in enumerate(votes, start=1):
        if vote.number != number or vote.previous != last:
            raise _broken(where, number, "does not follow the one before it")
        if vote.showing != shown.get(vote.ticket, 0):
            raise _broken(where, number, "is not the next on its ticket")
        shown[vote.ticket] = vote.showing + 1
        last = vote.digest
    return last


def _broken(where: str, number: int, what: str) -> ContractBroken:
    return ContractBroken(
        f"{where}: vote {number} {what}.",
        "A vote was changed, added or taken out. Go back to a backup.",
    )
