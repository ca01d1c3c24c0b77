"""The pilot: a fixed number of records over eight categories, every one inspected, then sealed.

Paper: §4.3.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from pdt.config import PdtConfig, PilotConfig
from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.provenance import (
    check_manifest,
    new_directory,
    sha256_json,
    write_json,
    write_manifest,
)
from pdt.records.checks import check_document
from pdt.records.review import ReviewLog, document_sha256
from pdt.records.stored import stored_documents
from pdt.teacher.document import TaughtDocument
from pdt.terms import Inspection
from pdt.tokenizer import load_tokenizer

SEAL, DOCUMENTS, REVIEWS = "pilot.json", "documents.jsonl", "reviews.jsonl"


class PilotRecord(Contract):
    """One record of a sealed pilot, and who accepted it."""

    record_id: Id
    """The record."""
    sha256: Sha256
    """Its digest."""
    category: Id
    """Its kind of history."""
    reviewer: Line
    """Who accepted it."""
    at: AwareDatetime
    """When."""
    reason: Line
    """Why."""


class Pilot(Contract):
    """A sealed pilot."""

    schema_version: Literal["pdt.pilot/1"] = "pdt.pilot/1"
    """The version of this contract."""
    records: tuple[PilotRecord, ...]
    """In the order of their ids."""
    categories: dict[str, int]
    """Records by category."""
    seal: Sha256
    """Digest of the records above."""


def pilot_problems(
    documents: Sequence[TaughtDocument], log: ReviewLog, pilot: PilotConfig
) -> list[str]:
    """Everything that keeps these documents from being a pilot."""
    problems = []
    if len(documents) != pilot.records:
        problems.append(f"{len(documents)} records; required: {pilot.records}")
    counts = Counter(document.category for document in documents)
    if len(counts) != pilot.categories:
        problems.append(
            f"{len(counts)} categories ({', '.join(sorted(counts)) or 'none'}); "
            f"required: {pilot.categories}"
        )
    share, rest = divmod(pilot.records, pilot.categories)
    required = f"{share} to {share + 1}" if rest else f"{share}"
    problems += [
        f"category {category} has {count} records; required: {required}"
        for category, count in sorted(counts.items())
        if not share <= count <= share + bool(rest)
    ]
    for document in documents:
        review = log.of(document)
        if review is None:
            why = (
                "has changed since it was inspected" if log.changed(document) else "is uninspected"
            )
            problems.append(f"record {document.record_id} {why}")
        elif review.verdict is not Inspection.ACCEPTED:
            problems.append(
                f"record {document.record_id} was rejected by {review.reviewer}: {review.reason}"
            )
    return problems


def seal_pilot(
    documents: Sequence[TaughtDocument], log: ReviewLog, config: PdtConfig, out: Path
) -> Pilot:
    """Write the pilot with the reviews that carry it, or refuse with every reason at once."""
    documents = sorted(documents, key=lambda document: document.record_id)
    problems = pilot_problems(documents, log, config.records.pilot)
    tokenizer = load_tokenizer(config.records.tokenizer)
    for document in documents:
        problems += [
            f"record {document.record_id} breaks {failure}"
            for failure in check_document(document, config, tokenizer)
        ]
    if problems:
        shown = [f"  {problem}" for problem in problems[:20]]
        if len(problems) > 20:
            shown.append(f"  and {len(problems) - 20} more")
        raise ContractBroken(
            "\n".join(["This is not a pilot that can be sealed:", *shown]),
            "`pdt record review` inspects; records that are rejected or too many are left out. "
            "The rules are the preset's: give --preset as the records were compiled with.",
        )
    records = tuple(_record(document, log) for document in documents)
    pilot = Pilot(
        records=records,
        categories=dict(sorted(Counter(record.category for record in records).items())),
        seal=sha256_json([record.model_dump(mode="json") for record in records]),
    )
    with new_directory(out) as work:
        with (work / DOCUMENTS).open("w", encoding="utf-8") as file:
            file.writelines(document.model_dump_json() + "\n" for document in documents)
        (work / REVIEWS).write_bytes(log.path.read_bytes())
        write_json(work / SEAL, pilot.model_dump(mode="json"))
        write_manifest(work, made_by="pdt record seal", config=config.model_dump(mode="json"))
    return pilot


def read_pilot(directory: Path) -> Pilot:
    """A sealed pilot, with every file, digest and review checked again."""
    remedy = "Take it as `pdt record seal` wrote it, or seal it again."
    if not (directory / SEAL).is_file():
        raise UsageError(f"{directory} holds no {SEAL}.\nGive a directory of `pdt record seal`.")
    check_manifest(directory, (SEAL, DOCUMENTS, REVIEWS))
    path = directory / SEAL
    pilot = parse_contract(Pilot, path.read_bytes(), where=str(path), remedy=remedy)
    log = ReviewLog(directory / REVIEWS)
    documents = list(stored_documents(directory / DOCUMENTS))
    records = tuple(_record(one, log) for one in documents if log.of(one) is not None)
    seal = sha256_json([record.model_dump(mode="json") for record in pilot.records])
    if seal != pilot.seal or records != pilot.records or len(records) != len(documents):
        raise ContractBroken(f"{directory} does not follow from its documents and reviews.", remedy)
    rejected = [r.record_id for r in records if not _accepted(r, log)]
    if rejected:
        raise ContractBroken(f"{directory}: {rejected[0]} was not accepted.", remedy)
    return pilot


def _accepted(record: PilotRecord, log: ReviewLog) -> bool:
    last = [r for r in log.reviews if r.record_sha256 == record.sha256]
    return bool(last) and last[-1].verdict is Inspection.ACCEPTED


def _record(document: TaughtDocument, log: ReviewLog) -> PilotRecord:
    review = log.of(document)
    assert review is not None, "pilot_problems lists a record without a review"
    return PilotRecord(
        record_id=document.record_id,
        sha256=document_sha256(document),
        category=document.category,
        reviewer=review.reviewer,
        at=review.at,
        reason=review.reason,
    )
