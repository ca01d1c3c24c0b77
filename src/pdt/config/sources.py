"""The section of the sources: gates, splits, cleaning, fetching.

Paper: §4.1, Table 1.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pdt.config.node import Count, Share, Strict, Weight
from pdt.config.presets import canonical_part
from pdt.config.records import Range


class SourceGateLimits(Strict):
    """The numbers of Table 1; the length of the body is `records.limits.source_tokens`."""

    age_years: Count
    """Years between the event's end and the acquisition, at least."""
    assessment_classes: tuple[str, ...]
    """Classes that a history-oriented WikiProject must have given."""
    sections: Count
    paragraphs: Count
    """Substantive ones, at least."""
    paragraph_tokens: Count
    """A paragraph is substantive from this many tokens on."""
    citation_occurrences: Count
    cited_works: Count
    """Distinct ones, at least."""
    scholarly_works: Count
    """Distinct scholarly or institutional works, at least."""
    cited_paragraphs: Share
    """Share of substantive paragraphs with a citation, at least."""
    top_work: Share
    """Share of occurrences that the most cited work may have, at most."""


class SplitShares(Strict):
    """How new families are divided; families that are sealed stay where they are."""

    seed: int
    train: Share
    validation: Share
    test: Share

    @model_validator(mode="after")
    def _whole(self) -> "SplitShares":
        total = self.train + self.validation + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train, validation and test add up to {total:g}; make them 1")
        return self


class HtmlLimits(Strict):
    """What a page may ask of the reader before it is refused."""

    bytes: Count
    depth: Count
    """Nested elements; parsing costs their number times their depth."""


class FetchConfig(Strict):
    """How Wikimedia is asked. Its rules: a contact, few connections, back off when told to."""

    contact: str | None = None
    """A mail address or web page of the operator, sent with every request; there is no default."""
    project: str
    """The wiki, by host."""
    connections: Annotated[int, Field(ge=1, le=3)]
    maxlag: Annotated[int, Field(ge=1)]
    """Seconds of replication lag above which the servers may refuse."""
    requests_per_second: Annotated[float, Field(gt=0)]
    timeout_seconds: Annotated[float, Field(gt=0)]
    """Of a connection, and of each silence while reading."""
    body_seconds: Annotated[float, Field(gt=0)]
    """Of one whole answer, however steadily it drips."""
    attempts: Count
    """Tries of one request before its candidate is put off."""
    backoff_seconds: Annotated[float, Field(ge=0)]
    """Pause after the first failure without `Retry-After`; doubles each time."""
    retry_after_most: Annotated[float, Field(gt=0)]
    """A longer `Retry-After` ends the run instead of waiting."""


class DossierConfig(Strict):
    """Sources put together from real texts (`pdt corpus write`)."""

    kinds: dict[Literal["dossier", "paragraphs", "article"], Weight]
    """Notes under headings, notes as loose paragraphs, one whole text; and how often."""
    notes: Range
    """Texts that one dossier holds."""
    note_words: Range
    """Words of such a text."""
    told_share: Share
    """Sentences of a note that can be told alone, at least."""
    alone_words: Count
    """A text of one paragraph is a source by itself from so many words on."""


class SourcesConfig(Strict):
    """From Wikimedia to an accepted article. Paper: §4.1, Table 1."""

    source_gates: SourceGateLimits
    splits: SplitShares
    html: HtmlLimits
    fetch: FetchConfig
    dossiers: DossierConfig = Field(
        default_factory=lambda: DossierConfig(**canonical_part("sources", "dossiers"))
    )
