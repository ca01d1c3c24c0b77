"""What people said about records: a log that only grows, each line sealed into the next.

A review is of one exact record. A record that changed is uninspected again.

Paper: §4.3 (each manually inspected).
"""

import fcntl
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import CorruptFile, UsageError
from pdt.provenance import sha256_json
from pdt.teacher.document import TaughtDocument
from pdt.terms import Inspection


class Review(Contract):
    """One person's verdict on one exact record."""

    schema_version: Literal["pdt.review/1"] = "pdt.review/1"
    """The version of this contract."""
    record_id: Id
    """The record."""
    record_sha256: Sha256
    """Digest of the document as it was when it was inspected."""
    verdict: Inspection
    """accepted or rejected."""
    reviewer: Line
    """Who looked at it."""
    reason: Line
    """Why."""
    at: AwareDatetime
    """When."""
    previous: Sha256 | None = None
    """Digest of the line before, so that no line can be changed or taken out unseen."""


def document_sha256(document: TaughtDocument) -> str:
    """The identity of a record, wherever it is stored."""
    return sha256_json(document.model_dump(mode="json"))


class ReviewLog:
    """The reviews of one file, newest last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reviews: list[Review] = []
        self._last: str | None = None
        if path.exists():
            self._read(path.read_bytes())

    def of(self, document: TaughtDocument) -> Review | None:
        """The latest review of exactly this record; None when it was changed since, or never."""
        digest = document_sha256(document)
        for review in reversed(self.reviews):
            if (review.record_id, review.record_sha256) == (document.record_id, digest):
                return review
        return None

    def changed(self, document: TaughtDocument) -> bool:
        """Was the record inspected, but not as it is now?"""
        known = any(review.record_id == document.record_id for review in self.reviews)
        return known and self.of(document) is None

    def add(
        self, document: TaughtDocument, verdict: Inspection, *, reviewer: str, reason: str
    ) -> Review:
        """Append one review; it is on disk when this returns."""
        if not self.path.parent.is_dir():
            raise UsageError(f"{self.path.parent} is not a directory.\nMake it first.")
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two reviewers may work at once
            file.seek(0)
            self.reviews, self._last = [], None
            self._read(file.read())
            data = {
                "record_id": document.record_id,
                "record_sha256": document_sha256(document),
                "verdict": verdict,
                "reviewer": reviewer,
                "reason": reason,
                "at": datetime.now(UTC).replace(microsecond=0),
                "previous": self._last,
            }
            review = parse_contract(
                Review, data, where="The review", remedy="Give a reviewer and a reason, one line."
            )
            line = review.model_dump_json().encode()
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._append(review, line)
        return review

    def _read(self, data: bytes) -> None:
        for number, line in enumerate(data.splitlines(), start=1):
            where = f"{self.path}:{number}"
            review = parse_contract(Review, line, where=where, remedy=_REMEDY)
            if review.previous != self._last:
                raise CorruptFile(
                    f"{where} does not follow the line before it.\n"
                    f"A line was changed, added or taken out. {_REMEDY}"
                )
            self._append(review, line)

    def _append(self, review: Review, line: bytes) -> None:
        self.reviews.append(review)
        self._last = hashlib.sha256(line).hexdigest()


_REMEDY = "Take the log again from where it is kept; reviews are only ever added."
