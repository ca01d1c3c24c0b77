"""Opening an audit: a verdict that verifies becomes a sealed queue in a new database.

Paper: §7.2.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from pdt.audit.blinding import KEY_BYTES, Blind, deal
from pdt.audit.clock import now, stamp
from pdt.audit.plan import AuditPlan, draw_documents
from pdt.audit.queue import Queue, build_queue
from pdt.audit.store.database import Database
from pdt.audit.store.schema import AuditRow, ItemRow, TextRow, TicketRow
from pdt.audit.training import Training, read_training
from pdt.errors import UsageError
from pdt.evaluation.lines.raw import Raw, read_raw
from pdt.evaluation.verify.verify import verify_results
from pdt.provenance import MANIFEST, sha256_file


@dataclass(frozen=True)
class AuditAsked:
    """What an operator chooses."""

    name: str = "Fact audit"
    conditions: tuple[str, ...] = ()
    """Empty for all that the verdict has."""
    documents: int | None = None
    nodes: int | None = None
    seats: int = 2
    seed: int = 0
    training: Path | None = None


def open_audit(verdict: Path, url: str, asked: AuditAsked, *, key: bytes | None = None) -> Queue:
    """Check the verdict whole, draw the sample, and write the queue; the key is drawn anew."""
    verify_results(verdict)
    training = read_training(asked.training)
    queue = plan_queue(read_raw(verdict), sha256_file(verdict / MANIFEST), asked, training)
    database = Database(url, new=True)
    try:
        write_queue(database, queue, training, key or secrets.token_bytes(KEY_BYTES))
    finally:
        database.close()
    return queue


def plan_queue(raw: Raw, verdict: str, asked: AuditAsked, training: Training) -> Queue:
    """The sealed plan and the items it gives."""
    plan = AuditPlan(
        name=asked.name,
        verdict=verdict,
        conditions=_conditions(raw, asked.conditions),
        documents=draw_documents(
            raw.documents,
            verdict=verdict,
            seed=asked.seed,
            most=asked.documents,
            nodes=asked.nodes,
        ),
        documents_of_verdict=len(raw.documents),
        nodes=asked.nodes,
        seed=asked.seed,
        seats=asked.seats,
        training=training.digest,
        pass_mark=training.pass_mark,
    )
    return build_queue(plan, raw)


def write_queue(database: Database, queue: Queue, training: Training, key: bytes) -> None:
    """All of it in one transaction: a database holds a whole queue or none."""
    blind, plan = Blind(key), queue.plan
    numbers = [item.number for item in queue.items]
    with database.writing() as session:
        if session.scalar(select(AuditRow.id)) is not None:
            raise UsageError(
                "This database holds an audit already.\nGive another --db; one holds one audit."
            )
        session.add(
            AuditRow(
                id=1,
                plan=plan.model_dump_json(),
                training=training.model_dump_json(),
                key=key.hex(),
                seal=queue.seal(key),
                opened_at=stamp(now()),
            )
        )
        session.add_all(
            TextRow(
                number=number,
                condition=text.condition,
                record_id=text.record_id,
                lane=text.lane,
                paragraphs=json.dumps(text.paragraphs, ensure_ascii=False),
            )
            for number, text in enumerate(queue.texts)
        )
        session.flush()
        session.add_all(
            ItemRow(
                **item.model_dump(mode="json"),
                checked=blind.is_checked(item.number, plan.check_share),
                place=blind.fraction("adjudication", item.number),
            )
            for item in queue.items
        )
        for seat in range(plan.seats):
            session.add_all(
                TicketRow(
                    id=dealt.ticket,
                    purpose=str(dealt.purpose),
                    item=dealt.item,
                    seat=seat,
                    round=0,
                    position=position,
                    showing=0,
                )
                for position, dealt in enumerate(deal(blind, plan, numbers, seat))
            )


def _conditions(raw: Raw, names: Sequence[str]) -> tuple[str, ...]:
    known = list(dict.fromkeys(row.condition for row in raw.written))
    for name in names:
        if name not in known:
            raise UsageError(f"The verdict has no condition {name!r}. It has: {', '.join(known)}.")
    return tuple(name for name in known if not names or name in names)
