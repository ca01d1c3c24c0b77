"""The reviewed list of pages to take: what a person must judge, and no program can.

A candidate names one exact revision, what it is about, when its event ended and which other pages
belong to its family. A file holds a YAML list, or one JSON object a line.

Paper: §4.1, Table 1.
"""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pdt.contract import Contract, Id, Line, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.parse import NotParsed, parse_json, parse_yaml
from pdt.terms import Topic


class Candidate(Contract):
    """One page at one revision, as a reviewer proposes it."""

    schema_version: Literal["pdt.candidate/1"] = "pdt.candidate/1"
    """The version of this contract."""
    project: Line = "en.wikipedia.org"
    """The wiki, by host."""
    title: Line
    """The page's title at that revision."""
    page_id: int = Field(ge=1)
    """The page, as its wiki numbers it."""
    revision_id: int = Field(ge=1)
    """The exact revision; nothing else is ever taken."""
    topic: Topic
    """What the page is about; only an event or a process can be accepted."""
    category: Id
    """The kind of history, one of the corpus's eight."""
    event_end_year: int = Field(ge=-10000, le=3000)
    """When the event or process ended; years before our era are negative."""
    event_end_date: datetime.date | None = None
    """The exact day, where the year alone leaves the age open."""
    family_keys: tuple[Id, ...] = Field(min_length=1)
    """Names of families; candidates that share one fall into one split."""
    related_pages: tuple[Line, ...] = ()
    """Titles of pages that tell the same story; they fall into the same split."""
    reviewer: Line
    """Who judged."""
    reviewed_on: datetime.date
    """When."""
    note: Line | None = None
    """Why, where it is not plain."""

    @property
    def key(self) -> str:
        """The page and revision in one word: `en.wikipedia.org:803460684`."""
        return f"{self.project}:{self.revision_id}"


def read_candidates(path: Path) -> list[Candidate]:
    """Every candidate of a YAML or JSONL file; one mistake refuses the file with its place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}.\nGive a YAML or JSONL file of candidates."
        ) from error
    found = [
        parse_contract(Candidate, data, where=where, remedy=_REMEDY)
        for where, data in _entries(path, text)
    ]
    _refuse_repeats(path, found)
    return found


_REMEDY = "`pdt record schema Candidate` prints what is expected."


def _entries(path: Path, text: str) -> Sequence[tuple[str, Any]]:
    if path.suffix == ".jsonl":
        return [
            (f"{path}:{number}", _line(path, number, line))
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        ]
    try:
        tree = parse_yaml(text)
    except NotParsed as error:
        raise UsageError(f"{path} is not YAML: {error}.\nCorrect it.") from error
    if tree is None:
        tree = []
    if not isinstance(tree, list) or not all(isinstance(entry, dict) for entry in tree):
        raise UsageError(f"{path} must hold a list of candidates.\n{_REMEDY}")
    return [(f"{path} entry {number}", entry) for number, entry in enumerate(tree, start=1)]


def _line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except NotParsed as error:
        raise UsageError(f"{path}:{number} is not JSON: {error}.\nCorrect the line.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}:{number} is not an object.\n{_REMEDY}")
    return value


def _refuse_repeats(path: Path, found: Sequence[Candidate]) -> None:
    pages: dict[tuple[str, int, int], Candidate] = {}
    for candidate in found:
        # A generator (`pdt.chronicle/1`) may draw one title twice; its texts are its revisions.
        revision = candidate.revision_id if "/" in candidate.project else 0
        other = pages.setdefault((candidate.project, candidate.page_id, revision), candidate)
        if other is not candidate:
            raise ContractBroken(
                f"{path} names page {candidate.page_id} twice: {other.title!r} at revision "
                f"{other.revision_id} and {candidate.title!r} at {candidate.revision_id}.",
                "One page is one candidate. Remove one of them.",
            )
