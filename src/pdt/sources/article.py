"""The cleaned article: title, hierarchical headings, prose paragraphs, and nothing else.

Citation identities stay beside each paragraph as audit metadata; `Article.text` never shows them.

Paper: §4.1.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from pydantic import model_validator

from pdt.contract import Contract, Id, Line, Sha256


class Paragraph(Contract):
    """One ordinary prose paragraph."""

    id: Id
    """Unique in the article; a fact names it."""
    text: Line
    """Display text only: links give their words, citation markers are gone."""
    citation_ids: tuple[Id, ...] = ()
    """The citations that stood in this paragraph, in order; never shown to the model."""


class ArticleSection(Contract):
    """A heading and the paragraphs directly under it."""

    path: tuple[Line, ...]
    """Headings from the outermost to this one; empty for the lead."""
    paragraphs: tuple[Paragraph, ...] = ()
    """In reading order; empty when the heading only holds deeper headings."""


class Citation(Contract):
    """One footnote of the source: audit metadata, never model-visible."""

    id: Id
    """The name a paragraph uses."""
    cited_work: Id
    """The work it cites; several citations may cite one work."""
    text: Line
    """The footnote as a reader of the source sees it."""


class Article(Contract):
    """What a model may see of one source, and what an audit needs beside it."""

    schema_version: Literal["pdt.article/1"] = "pdt.article/1"
    """The version of this contract."""
    bundle_id: Sha256
    """The raw bundle it was derived from."""
    title: Line
    """The article's title."""
    sections: tuple[ArticleSection, ...]
    """In reading order, the lead (empty path) first when there is one."""
    citations: tuple[Citation, ...] = ()
    """Every citation that a paragraph names."""

    @model_validator(mode="after")
    def _consistent(self) -> "Article":
        _unique("paragraph id", [paragraph.id for _, paragraph in self.paragraphs()])
        _unique("citation id", [citation.id for citation in self.citations])
        known = {citation.id for citation in self.citations}
        seen: set[tuple[str, ...]] = {()}
        for section in self.sections:
            if section.path and section.path[:-1] not in seen:
                raise ValueError(f"section {section.path!r} has no heading {section.path[:-1]!r}")
            seen.add(section.path)
            for paragraph in section.paragraphs:
                if missing := set(paragraph.citation_ids) - known:
                    raise ValueError(
                        f"paragraph {paragraph.id} names unknown citations {sorted(missing)}"
                    )
        return self

    def paragraphs(self) -> Iterator[tuple[ArticleSection, Paragraph]]:
        """Every paragraph with its section, in reading order."""
        for section in self.sections:
            for paragraph in section.paragraphs:
                yield section, paragraph

    @cached_property
    def text(self) -> str:
        """The model-visible text: `# Title`, `## Heading`, `### Deeper`, paragraphs."""
        parts = [f"# {self.title}"]
        for section in self.sections:
            if section.path:
                parts.append(f"{'#' * (len(section.path) + 1)} {section.path[-1]}")
            parts += [paragraph.text for paragraph in section.paragraphs]
        return "\n\n".join(parts)

    def paragraph_starts(self) -> dict[str, int]:
        """The character of `text` at which each paragraph begins."""
        starts, place = {}, len(f"# {self.title}")
        for section in self.sections:
            if section.path:
                place += len(f"\n\n{'#' * (len(section.path) + 1)} {section.path[-1]}")
            for paragraph in section.paragraphs:
                starts[paragraph.id] = place + 2
                place += 2 + len(paragraph.text)
        return starts


def _unique(what: str, values: list[str]) -> None:
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise ValueError(f"{what} used twice: {', '.join(twice[:5])}")
