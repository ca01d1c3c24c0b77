"""Verify a closed audit: the queue from the verdict, the chain, the decisions, every number.

Paper: §7.2.
"""

from pathlib import Path

from pdt.audit.decisions import check_votes, decided
from pdt.audit.directory import (
    AGREEMENT,
    AUDIT,
    FILES,
    ITEMS,
    JUDGMENTS,
    MADE_BY,
    REPORT,
    VOTES,
    StoredAudit,
    read_audit_directory,
)
from pdt.audit.plan import draw_documents
from pdt.audit.queue import build_queue
from pdt.audit.report import render_report
from pdt.audit.store.chain import follow_chain
from pdt.audit.tables import adjudicated_lines, drawn_raw
from pdt.audit.work import summarize
from pdt.errors import ContractBroken
from pdt.evaluation.lines.raw import read_raw
from pdt.provenance import MANIFEST, check_manifest, sha256_file


def verify_audit(directory: Path, verdict: Path) -> StoredAudit:
    """The audit, if all of it follows from its votes and from the verdict it is of."""
    manifest = check_manifest(directory, FILES)
    if manifest.get("made_by") != MADE_BY:
        raise ContractBroken(
            f"{directory} was made by {manifest.get('made_by')!r}.",
            "Give a directory of `pdt audit close`.",
        )
    audit = read_audit_directory(directory)
    closed, queue, raw = audit.closed, audit.queue, read_raw(verdict)
    plan = closed.plan
    if plan.verdict != sha256_file(verdict / MANIFEST):
        raise _changed(directory / AUDIT, f"it is an audit of another verdict than {verdict}")
    drawn = draw_documents(
        raw.documents,
        verdict=plan.verdict,
        seed=plan.seed,
        most=len(plan.documents),
        nodes=plan.nodes,
    )
    if drawn != plan.documents or plan.documents_of_verdict != len(raw.documents):
        raise _changed(directory / AUDIT, "the sample is not the one that its seed draws")
    if plan.training != closed.training.digest:
        raise _changed(directory / AUDIT, "the training examples are not the sealed ones")
    if build_queue(plan, raw) != queue:
        raise _changed(directory / ITEMS, "items or texts are not those of the verdict")
    if queue.seal(closed.blind.key) != closed.seal:
        raise _changed(directory / AUDIT, "the seal is not of this queue and key")
    head = follow_chain(audit.votes, closed.seal, str(directory / VOTES))
    if (head, len(audit.votes)) != (closed.head, closed.votes):
        raise _changed(directory / VOTES, "the chain does not end with the sealed last link")
    rounds = {person.person: person.training_rounds for person in audit.people}
    check_votes(queue, closed.blind, rounds, audit.votes)
    decisions = decided(queue, closed.blind, audit.votes)
    if tuple(adjudicated_lines(queue, decisions, drawn_raw(queue, raw))) != audit.judgments:
        raise _changed(directory / JUDGMENTS, "the judgments do not follow from the votes")
    work = summarize(queue, audit.votes, decisions)
    if work != audit.work:
        raise _changed(directory / AGREEMENT, "the agreement does not follow from the votes")
    if (directory / REPORT).read_text(encoding="utf-8") != render_report(plan, work, closed.votes):
        raise _changed(directory / REPORT, "does not show the stored numbers")
    return audit


def _changed(path: Path, what: str) -> ContractBroken:
    return ContractBroken(
        f"{path}: {what}.",
        "The directory was changed after it was written. Close the audit again from its database.",
    )
