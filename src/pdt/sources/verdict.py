"""What the source gates say of one article, stored.

Paper: §4.1, Table 1.
"""

from typing import Literal

from pydantic import Field, JsonValue

from pdt.contract import Contract, Id, Line, Sha256
from pdt.sources.article import Article
from pdt.sources.candidates import Candidate
from pdt.terms import Split


class Requirement(Contract):
    """One requirement of a row."""

    name: Id
    """For example `top_work`."""
    measured: JsonValue
    """What the article has."""
    required: Line
    """What it needs, in words."""
    passed: bool
    """Does it hold?"""
    evidence: tuple[str, ...] = ()
    """What the measurement rests on, for a reviewer."""


class SourceGate(Contract):
    """One row of Table 1, held against one article."""

    row: Literal["topic_and_age", "assessment", "complete_body", "citations", "split_integrity"]
    """The row."""
    requirements: tuple[Requirement, ...]
    """Its requirements, each measured."""

    @property
    def passed(self) -> bool:
        return all(requirement.passed for requirement in self.requirements)


class SourceVerdict(Contract):
    """Every row for one article; accepted only when all hold."""

    schema_version: Literal["pdt.source_verdict/1"] = "pdt.source_verdict/1"
    """The version of this contract."""
    bundle_id: Sha256
    """The source."""
    title: Line
    """Its title."""
    accepted: bool
    """Did every requirement hold?"""
    source_gates: tuple[SourceGate, ...]
    """The rows of Table 1."""
    list_versions: dict[str, int]
    """Versions of the published lists it was reached with."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """What of the page is not in the article, by reason."""
    tokenizer_sha256: Sha256
    """Whose tokens were counted."""

    def reasons(self) -> list[str]:
        """Each requirement that failed, in one line."""
        return [
            f"{requirement.name}: {requirement.measured} (required: {requirement.required})"
            for row in self.source_gates
            for requirement in row.requirements
            if not requirement.passed
        ]


class AcceptedSource(Contract):
    """A line of accepted.jsonl: what the teacher starts from."""

    schema_version: Literal["pdt.accepted_source/1"] = "pdt.accepted_source/1"
    """The version of this contract."""
    candidate: Candidate
    """What the reviewer said."""
    split: Split
    """Fixed before any teaching."""
    family_key: Id
    """Its family; one split holds all of it."""
    article: Article
    """What a model may see."""
    verdict: SourceVerdict
    """Why it was accepted."""


class RejectedSource(Contract):
    """A line of rejected.jsonl."""

    schema_version: Literal["pdt.rejected_source/1"] = "pdt.rejected_source/1"
    """The version of this contract."""
    candidate: Candidate | None
    """What the reviewer said, if the page was a candidate at all."""
    bundle_id: Line
    """The source, or the name of what could not be read."""
    title: Line
    """Its title, as far as known."""
    reasons: tuple[str, ...]
    """Every reason, measured and required."""
    verdict: SourceVerdict | None = None
    """All rows, when the bundle could be read."""
