"""Closing an audit: no vote is taken any more, the key is published, the directory is written.

Paper: §7.2.
"""

import json
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from pdt.audit.answers import Purpose
from pdt.audit.clock import now, stamp
from pdt.audit.decisions import check_votes, decided
from pdt.audit.directory import (
    MADE_BY,
    AuditPerson,
    ClosedAudit,
    StoredAudit,
    write_audit,
)
from pdt.audit.queue import AuditItem, AuditText, Queue
from pdt.audit.report import render_report
from pdt.audit.store.audits import audit_row, read_audit
from pdt.audit.store.chain import Vote, read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.people import as_person
from pdt.audit.store.schema import ItemRow, PersonRow, TextRow, TicketRow
from pdt.audit.tables import adjudicated_lines, drawn_raw
from pdt.audit.work import summarize
from pdt.errors import ContractBroken
from pdt.evaluation.lines.raw import Raw, read_raw
from pdt.provenance import (
    MANIFEST,
    new_directory,
    refuse_existing,
    sha256_file,
    write_manifest,
)


def close_audit(database: Database, verdict: Path, out: Path) -> StoredAudit:
    """Seal the audit and write its directory; of a closed one the directory is written again."""
    refuse_existing(out)
    found = sha256_file(verdict / MANIFEST) if (verdict / MANIFEST).is_file() else "none"
    with database.writing() as session:
        audit = closed_form(session, read_raw(verdict), found)
        row = audit_row(session)
        row.closed_at = row.closed_at or stamp(now())
    with new_directory(out) as work:
        write_audit(work, audit, render_report(audit.closed.plan, audit.work, audit.closed.votes))
        write_manifest(
            work,
            made_by=MADE_BY,
            config={"plan": audit.closed.plan.model_dump(mode="json")},
            inputs={"verdict": audit.closed.plan.verdict},
        )
    return audit


def closed_form(session: Session, raw: Raw, verdict: str) -> StoredAudit:
    """Everything of a finished audit, checked from the first link to the last."""
    audit, row = read_audit(session), audit_row(session)
    if audit.plan.verdict != verdict:
        raise ContractBroken(
            f"The audit is of the verdict {audit.plan.verdict[:16]}, not of {verdict[:16]}.",
            "Give the directory that `pdt audit open` was given.",
        )
    queue = stored_queue(session)
    if queue.seal(audit.blind.key) != row.seal:
        raise ContractBroken(
            "The queue in the database is not the one that was sealed.",
            "Items or texts were changed. Go back to a backup.",
        )
    votes = read_votes(session)
    people = _people(session)
    check_votes(queue, audit.blind, {p.person: p.training_rounds for p in people}, votes)
    check_tickets(session, votes)
    decisions = decided(queue, audit.blind, votes)
    sample = drawn_raw(queue, raw)
    return StoredAudit(
        ClosedAudit(
            plan=audit.plan,
            key=audit.blind.key.hex(),
            seal=row.seal,
            head=votes[-1].digest,
            votes=len(votes),
            training=audit.training,
        ),
        queue,
        people,
        tuple(votes),
        tuple(adjudicated_lines(queue, decisions, sample)),
        summarize(queue, votes, decisions),
    )


def stored_queue(session: Session) -> Queue:
    """The unblinded queue again."""
    texts = session.scalars(select(TextRow).order_by(TextRow.number))
    items = session.scalars(select(ItemRow).order_by(ItemRow.number))
    return Queue(
        read_audit(session).plan,
        tuple(
            AuditText(
                condition=row.condition,
                record_id=row.record_id,
                lane=row.lane,
                paragraphs=json.loads(row.paragraphs),
            )
            for row in texts
        ),
        tuple(
            AuditItem.model_validate({name: getattr(row, name) for name in AuditItem.model_fields})
            for row in items
        ),
    )


def check_tickets(session: Session, votes: list[Vote]) -> None:
    """What tickets repeat of their last vote is what the chain says."""
    last = {vote.ticket: vote for vote in votes}
    for row in session.scalars(select(TicketRow)):
        vote = last.get(row.id)
        said = (None, 0) if vote is None else (vote.answer, vote.showing + 1)
        if (row.answer, row.showing) != said:
            raise ContractBroken(
                f"Ticket {row.id} says {row.answer!r} after {row.showing} votes; the chain of "
                f"votes says {said[0]!r} after {said[1]}.",
                "The database was changed by hand. Go back to a backup.",
            )


def _people(session: Session) -> tuple[AuditPerson, ...]:
    rounds: dict[int, int] = {}
    for person, round_ in session.execute(
        select(TicketRow.person, TicketRow.round).where(TicketRow.purpose == Purpose.TRAINING)
    ):
        assert person is not None, "examples are dealt to a person"
        rounds[person] = max(rounds.get(person, 0), round_ + 1)
    return tuple(
        AuditPerson(
            person=row.id,
            roles=tuple(sorted(as_person(row).roles)),
            seat=row.seat,
            training_rounds=rounds.get(row.id, 0),
        )
        for row in session.scalars(select(PersonRow).order_by(PersonRow.id))
    )
