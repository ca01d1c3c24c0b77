"""Writing an annotator's items for another tool, and counting the votes that come back.

Paper: §7.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from pdt.audit.formats import label_studio, plain
from pdt.audit.formats.tasks import Answered, Task
from pdt.audit.judging import count_vote, paragraphs_of_ticket
from pdt.audit.store.audits import read_audit, still_open
from pdt.audit.store.people import Person, as_person
from pdt.audit.store.schema import ItemRow, PersonRow, TicketRow
from pdt.errors import AuditRefused, UsageError
from pdt.provenance import atomic_path, read_utf8


@dataclass(frozen=True)
class Format:
    """One way out and back."""

    write: Callable[[list[Task]], str]
    read: Callable[[str, str], list[Answered]]


FORMATS = {
    "label-studio": Format(label_studio.write_tasks, label_studio.read_votes),
    "csv": Format(plain.write_csv, plain.read_csv),
    "jsonl": Format(plain.write_jsonl, plain.read_jsonl),
}


def export_tasks(session: Session, name: str, out: Path, format_: str) -> int:
    """What the annotator has left, in their own order; the number of items written."""
    chosen, person, audit = _format(format_), _annotator(session, name), read_audit(session)
    if out.exists():
        raise UsageError(f"{out} exists.\nChoose another --out.")
    tickets = session.scalars(
        select(TicketRow)
        .where(TicketRow.seat == person.seat, TicketRow.answer.is_(None))
        .order_by(TicketRow.position)
    )
    tasks = [
        Task(
            id=ticket.id,
            claim=session.get_one(ItemRow, ticket.item).words,
            paragraphs=paragraphs_of_ticket(session, audit, ticket),
        )
        for ticket in tickets
    ]
    with atomic_path(out) as partial:
        partial.write_text(chosen.write(tasks), encoding="utf-8")
    if format_ == "label-studio":
        with atomic_path(out.with_suffix(".xml")) as partial:
            partial.write_text(label_studio.configuration(), encoding="utf-8")
    return len(tasks)


def import_votes(session: Session, name: str, file: Path, format_: str) -> tuple[int, int]:
    """Count every vote of the file, or refuse them all; how many, and how many stood before.

    A vote that stands with the same answer is passed over, so that a file can be given twice.
    """
    chosen, audit, person = _format(format_), still_open(session), _annotator(session, name)
    if not file.is_file():
        raise UsageError(f"{file} is not a file.\nGive the votes as the other tool exported them.")
    text = read_utf8(file, remedy="Give a file in UTF-8.")
    counted = before = 0
    seen: set[str] = set()
    for place, vote in enumerate(chosen.read(text, str(file)), start=1):
        where = f"{file}, vote {place} ({vote.id[:40]})"
        if vote.id in seen:
            raise UsageError(f"{where} is there twice.\nGive one answer an item.")
        seen.add(vote.id)
        ticket = session.get(TicketRow, vote.id)
        if ticket is None or ticket.seat is None or ticket.seat != person.seat:
            raise UsageError(f"{where} is no item of {name}.\nExport the items again.")
        if ticket.answer is not None:
            if ticket.answer != vote.answer:
                raise UsageError(
                    f"{where} says {vote.answer!r}; {ticket.answer!r} was counted before.\n"
                    "A vote can be taken back only on the page."
                )
            before += 1
            continue
        mark = None if vote.sentence is None else vote.sentence - 1
        try:
            count_vote(
                session, audit, person, ticket, vote.answer, mark, vote.remark, vote.seconds,
                format_,
            )  # fmt: skip
        except AuditRefused as error:
            raise UsageError(f"{where}: {error}") from error
        counted += 1
    return counted, before


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"--format is {name!r}; give {', '.join(FORMATS)}.")
    return FORMATS[name]


def _annotator(session: Session, name: str) -> Person:
    row = session.scalar(select(PersonRow).where(PersonRow.name == name))
    if row is None or row.seat is None:
        raise UsageError(f"There is no annotator {name!r}.\n`pdt audit status` lists them.")
    return as_person(row)
