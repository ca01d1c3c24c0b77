"""One bundle, read: the article a model may see, and everything an audit asks beside it.

Paper: §4.1.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pdt.config import HtmlLimits
from pdt.contract import parse_contract
from pdt.errors import CorruptFile, SourceRefused, UsageError
from pdt.sources.article import Article, Citation
from pdt.sources.assessments import Assessments, read_assessments
from pdt.sources.bundle import METADATA, SourceBundle, read_bundle, read_citations
from pdt.sources.citations import (
    Footnote,
    citation_id,
    cited_footnotes,
    read_bibliography,
    read_footnotes,
)
from pdt.sources.page import Page, open_page
from pdt.sources.prose import Prose, ProseParagraph, read_prose
from pdt.sources.templates import templates_in_page, templates_in_wikitext
from pdt.sources.works import Work, fold_works
from pdt.terms import SourceOrigin

NOTHING_SAID = "(empty footnote)"


@dataclass(frozen=True)
class PageReading:
    """What the HTML alone gives."""

    page: Page
    prose: Prose
    notes: dict[str, Footnote]
    works_of_note: dict[str, tuple[str, ...]]
    """Of notes that kept paragraphs cite with; the first is the note's `cited_work`."""
    works: dict[str, Work]

    @cached_property
    def paragraphs(self) -> list[tuple[str, ProseParagraph]]:
        """Every kept paragraph with its id, in reading order."""
        kept = [p for section in self.prose.sections for p in section.paragraphs]
        return [(f"p{number}", paragraph) for number, paragraph in enumerate(kept, start=1)]

    @cached_property
    def citations(self) -> tuple[Citation, ...]:
        """The reference records: every note that a kept paragraph cites with."""
        order = {name: place for place, name in enumerate(self.notes)}
        return tuple(
            Citation(
                id=citation_id(name),
                cited_work=self.works_of_note[name][0],
                text=self.notes[name].text or NOTHING_SAID,
            )
            for name in sorted(self.works_of_note, key=order.__getitem__)
        )

    def cited_in(self, paragraph: ProseParagraph) -> list[str]:
        """Footnote ids of the citations in one paragraph, every occurrence, in order."""
        return [o.note for o in paragraph.occurrences if o.note in self.works_of_note]

    @cached_property
    def occurrences(self) -> list[str]:
        """Footnote ids of all citation occurrences."""
        return [note for _, paragraph in self.paragraphs for note in self.cited_in(paragraph)]

    @cached_property
    def occurrences_of_work(self) -> Counter[str]:
        """How many occurrences cite each work; a bundled footnote counts for each of its works."""
        return Counter(work for note in self.occurrences for work in self.works_of_note[note])


@dataclass(frozen=True)
class SourceReading:
    """One bundle, whole: identity, article, assessments, templates."""

    bundle: SourceBundle
    article: Article
    html: PageReading
    assessments: Assessments
    templates: tuple[str, ...]
    """Every template called in the wikitext or marked in the HTML."""


def read_page(html: bytes, limits: HtmlLimits, *, where: str) -> PageReading:
    """Prose, footnotes and works of one Parsoid page."""
    page = open_page(html, limits, where=where)
    prose = read_prose(page)
    notes = read_footnotes(page)
    works_of_note, works = fold_works(notes, cited_footnotes(prose, notes), read_bibliography(page))
    return PageReading(page, prose, notes, works_of_note, works)


def read_source(directory: Path, limits: HtmlLimits) -> SourceReading:
    """The bundle at `directory`, checked and read. Refuses what its own records contradict."""
    bundle = read_bundle(directory)
    html = (directory / bundle.files["html"].name).read_bytes()
    reading = read_page(html, limits, where=f"{bundle.title} ({directory.name[:12]})")
    page = reading.page
    if bundle.origin is SourceOrigin.WIKIMEDIA and page.revision_id != bundle.revision_id:
        raise SourceRefused(
            str(directory),
            f"is of revision {bundle.revision_id}, but its HTML is of {page.revision_id}",
            "Take the bundle again.",
        )
    wikitext = (directory / bundle.files["wikitext"].name).read_bytes()
    article = article_of(reading, bundle.bundle_id, bundle.title)
    records = read_citations(directory, bundle)
    if bundle.origin is SourceOrigin.WIKIMEDIA:
        _refuse_other_rule(directory, reading.citations, records)
    else:
        article = _with_records(article, records)
    return SourceReading(
        bundle,
        article,
        reading,
        read_assessments(directory, bundle),
        tuple(templates_in_wikitext(wikitext.decode("utf-8")) + templates_in_page(page)),
    )


def article_of(reading: PageReading, bundle_id: str, title: str) -> Article:
    """The article in the form that everything after this reads."""
    ids = {id(paragraph): name for name, paragraph in reading.paragraphs}
    sections = [
        {
            "path": [line.text for line in section.path],
            "paragraphs": [
                {
                    "id": ids[id(paragraph)],
                    "text": paragraph.line.text,
                    "citation_ids": list(
                        dict.fromkeys(citation_id(note) for note in reading.cited_in(paragraph))
                    ),
                }
                for paragraph in section.paragraphs
            ],
        }
        for section in reading.prose.sections
    ]
    data = {
        "bundle_id": bundle_id,
        "title": title,
        "sections": sections,
        "citations": [citation.model_dump() for citation in reading.citations],
    }
    return parse_contract(Article, data, where=f"the article {title!r}")


def bundle_directories(root: Path) -> Iterator[Path]:
    """Every bundle under `root`, by address; the same order on every machine."""
    if not root.is_dir():
        raise UsageError(f"{root} is not a directory.\nGive a directory of bundles.")
    yield from sorted(path.parent for path in root.glob(f"*/{METADATA}"))


def _refuse_other_rule(
    directory: Path, ours: tuple[Citation, ...], theirs: tuple[Citation, ...]
) -> None:
    if ours != theirs:
        raise CorruptFile(
            f"{directory} keeps other reference records than this version reads from its HTML.\n"
            "The rule for cited works has changed. Make the bundle again from its own bytes: "
            "`pdt source fetch CANDIDATES --from THIS --out NEW`."
        )


def _with_records(article: Article, records: tuple[Citation, ...]) -> Article:
    """Sources that were not rendered by a wiki name their cited works themselves."""
    by_id = {record.id: record for record in records}
    data = article.model_dump(mode="json")
    data["citations"] = [
        by_id[c["id"]].model_dump() if c["id"] in by_id else c for c in data["citations"]
    ]
    return parse_contract(Article, data, where=f"the article {article.title!r}")
