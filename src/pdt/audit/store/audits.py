"""The one audit of a database: its plan, its key, and whether it still takes votes."""

from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import select
from sqlalchemy.orm import Session

from pdt.audit.blinding import Blind
from pdt.audit.plan import AuditPlan
from pdt.audit.store.schema import AuditRow
from pdt.audit.training import Training
from pdt.errors import AuditRefused, UsageError


@dataclass(frozen=True)
class OpenAudit:
    """What everybody who works on it needs."""

    plan: AuditPlan
    training: Training
    blind: Blind
    closed_at: str | None


def audit_row(session: Session) -> AuditRow:
    row = session.scalar(select(AuditRow))
    if row is None:
        raise UsageError("This database holds no audit.\nMake one with `pdt audit open`.")
    return row


def read_audit(session: Session) -> OpenAudit:
    row = audit_row(session)
    plan, training = _parsed(row.plan, row.training)
    return OpenAudit(plan, training, Blind(bytes.fromhex(row.key)), row.closed_at)


@lru_cache(maxsize=4)
def _parsed(plan: str, training: str) -> tuple[AuditPlan, Training]:
    """Every request needs them, and they never change."""
    return AuditPlan.model_validate_json(plan), Training.model_validate_json(training)


def still_open(session: Session) -> OpenAudit:
    """The audit, or a refusal when it is closed."""
    audit = read_audit(session)
    if audit.closed_at is not None:
        raise AuditRefused("This audit is closed; no vote is taken any more.")
    return audit


def open_plan(session: Session) -> AuditPlan:
    return still_open(session).plan
