"""A closed audit as a directory: the key is published, and everything follows from the votes.

    audit.json        plan, key, seal and the last digest of the chain
    texts.jsonl       what was judged, with condition, document and lane
    items.jsonl       every claim on a text
    people.jsonl      accounts by number and role, without names
    votes.jsonl       the chain
    judgments.jsonl   the final decisions, as lines of the kind that screens write
    agreement.json    how far annotators agree
    report.md         the same, to read

Paper: §7.2.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pdt.audit.answers import Role
from pdt.audit.blinding import Blind
from pdt.audit.plan import AuditPlan
from pdt.audit.queue import AuditItem, AuditText, Queue
from pdt.audit.store.chain import Vote
from pdt.audit.training import Training
from pdt.audit.work import AuditWork
from pdt.contract import Contract, Index, Sha256
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.raw import read_contract, read_lines, write_lines
from pdt.provenance import atomic_path

AUDIT, TEXTS, ITEMS, PEOPLE = "audit.json", "texts.jsonl", "items.jsonl", "people.jsonl"
VOTES, JUDGMENTS, AGREEMENT, REPORT = (
    "votes.jsonl",
    "judgments.jsonl",
    "agreement.json",
    "report.md",
)
FILES = (AUDIT, TEXTS, ITEMS, PEOPLE, VOTES, JUDGMENTS, AGREEMENT, REPORT)
MADE_BY = "pdt audit close"


class ClosedAudit(Contract):
    """audit.json."""

    plan: AuditPlan
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """What the queue was blinded with."""
    seal: Sha256
    """The first link of the chain of votes."""
    head: Sha256
    """The last."""
    votes: Index
    training: Training

    @property
    def blind(self) -> Blind:
        return Blind(bytes.fromhex(self.key))


class AuditPerson(Contract):
    """A line of people.jsonl."""

    person: Index
    roles: tuple[Role, ...]
    seat: Index | None
    """At the end; none for somebody who handed it on."""
    training_rounds: Index


@dataclass(frozen=True)
class StoredAudit:
    """Everything that the directory holds."""

    closed: ClosedAudit
    queue: Queue
    people: tuple[AuditPerson, ...]
    votes: tuple[Vote, ...]
    judgments: tuple[Judgment, ...]
    work: AuditWork


def write_audit(directory: Path, audit: StoredAudit, report: str) -> None:
    """Its files, into a directory that is there."""
    _write(directory / AUDIT, audit.closed)
    _write(directory / AGREEMENT, audit.work)
    write_lines(directory / TEXTS, audit.queue.texts)
    write_lines(directory / ITEMS, audit.queue.items)
    write_lines(directory / PEOPLE, audit.people)
    write_lines(directory / VOTES, audit.votes)
    write_lines(directory / JUDGMENTS, audit.judgments)
    with atomic_path(directory / REPORT) as partial:
        partial.write_text(report, encoding="utf-8")


def read_audit_directory(directory: Path) -> StoredAudit:
    closed = read_contract(directory / AUDIT, ClosedAudit)
    return StoredAudit(
        closed,
        Queue(
            closed.plan,
            tuple(read_lines(directory / TEXTS, AuditText)),
            tuple(read_lines(directory / ITEMS, AuditItem)),
        ),
        tuple(read_lines(directory / PEOPLE, AuditPerson)),
        tuple(read_lines(directory / VOTES, Vote)),
        tuple(read_lines(directory / JUDGMENTS, Judgment)),
        read_contract(directory / AGREEMENT, AuditWork),
    )


def _write(path: Path, value: Contract) -> None:
    with atomic_path(path) as partial:
        partial.write_text(value.model_dump_json(indent=2) + "\n", encoding="utf-8")
