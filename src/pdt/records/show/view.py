"""A document cut into runs of text with everything that is marked there: the terminal and the page
draw the same runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from pdt.config import PdtConfig
from pdt.records.align import DocumentTokens, LaneTokens, tokenize_document
from pdt.records.checks import check_document
from pdt.records.dependencies import PlacedDependency, place_dependency
from pdt.teacher.checks import CheckFailure
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole
from pdt.tokenizer import StudentTokenizer


@dataclass(frozen=True)
class ShownMark:
    """One labelled passage."""

    start: int
    end: int
    kind: str
    """owner, reference, source, dependency_owner, dependency_receiver, unreachable or coined."""
    name: str
    """The fact or dependency."""


@dataclass(frozen=True)
class ShownRun:
    """A stretch of text in which no mark begins or ends."""

    text: str
    marks: tuple[ShownMark, ...]
    block: int | None = None
    """The block that begins here, when one does."""


@dataclass(frozen=True)
class ShownParagraph:
    """A paragraph and the plan node it realizes."""

    runs: tuple[ShownRun, ...]
    node: int | None


@dataclass(frozen=True)
class ShownLane:
    """One section with its marks."""

    lane: int
    position: int | None
    """Where the reader sees it, 0 first."""
    paragraphs: tuple[ShownParagraph, ...]
    tokens: LaneTokens


@dataclass(frozen=True)
class View:
    """Everything that a page shows."""

    document: TaughtDocument
    source: dict[str, tuple[ShownRun, ...]]
    """Runs of each source paragraph, by id."""
    lanes: tuple[ShownLane, ...]
    """In the order in which the reader sees them."""
    owner_lane: dict[str, int]
    """Each fact's owner; a fact without exactly one is missing."""
    dependencies: dict[str, PlacedDependency]
    failures: list[CheckFailure] = field(default_factory=list)
    prompt_tokens: int = 0
    source_tokens: int = 0


def view_document(document: TaughtDocument, config: PdtConfig, tokenizer: StudentTokenizer) -> View:
    """Cut the document at every quote and block border, and run its checks."""
    tokens = tokenize_document(document, config, tokenizer)
    owner_lane = {
        roles.fact_id: owners[0]
        for roles in document.answer.roles
        if len(owners := [k for k, r in enumerate(roles.lanes) if r.role is FactRole.OWNER]) == 1
    }
    failures = check_document(document, config, tokenizer, tokens)
    lanes = tuple(_lane(document, tokens, lane, failures) for lane in _reading_order(document))
    return View(
        document=document,
        source=_source(document),
        lanes=lanes,
        owner_lane=owner_lane,
        dependencies=_dependencies(document, tokens),
        failures=failures,
        prompt_tokens=len(tokens.prompt),
        source_tokens=tokens.source_tokens,
    )


def _reading_order(document: TaughtDocument) -> list[int]:
    """Lanes as the reader meets them; lanes the order forgot come last."""
    count = len(document.answer.sections)
    order = [lane for lane in dict.fromkeys(document.answer.lane_at_position) if lane < count]
    return order + [lane for lane in range(count) if lane not in order]


def _source(document: TaughtDocument) -> dict[str, tuple[ShownRun, ...]]:
    marks: dict[str, list[ShownMark]] = {}
    for fact in document.inventory.facts:
        mark = ShownMark(fact.quote.start, fact.quote.end, "source", fact.id)
        marks.setdefault(fact.paragraph_id, []).append(mark)
    return {
        paragraph.id: cut(paragraph.text, marks.get(paragraph.id, []), {})
        for _, paragraph in document.article.paragraphs()
    }


def _lane(
    document: TaughtDocument, tokens: DocumentTokens, lane: int, failures: list[CheckFailure]
) -> ShownLane:
    answer, placed = document.answer, tokens.lanes[lane]
    section = answer.sections[lane]
    borders = {
        placed.starts[token]: token // placed.block_tokens
        for token in range(0, len(placed.starts), placed.block_tokens)
    }
    marks = [*_marks(document, lane), *_unreachable(failures, lane)]
    runs = cut(section.text, marks, borders)
    nodes = {
        paragraph: index
        for index, node in enumerate(answer.plans[lane].nodes if lane < len(answer.plans) else ())
        for paragraph in node.target_paragraphs
    }
    order = list(answer.lane_at_position)
    return ShownLane(
        lane=lane,
        position=order.index(lane) if lane in order else None,
        paragraphs=tuple(
            ShownParagraph(tuple(part), nodes.get(index))
            for index, part in enumerate(_by_paragraph(runs, section.spans))
        ),
        tokens=placed,
    )


def _marks(document: TaughtDocument, lane: int) -> Iterable[ShownMark]:
    for roles in document.answer.roles:
        for role in roles.lanes[lane : lane + 1]:
            for quote in role.quotes:
                yield ShownMark(quote.start, quote.end, str(role.role), roles.fact_id)
    for dependency in document.answer.dependencies:
        for side, end in (("owner", dependency.owner), ("receiver", dependency.receiver)):
            if end.lane != lane:
                continue
            quote = end.quote
            yield ShownMark(quote.start, quote.end, f"dependency_{side}", dependency.id)
            coined = dependency.coined.text if dependency.coined else None
            if coined and (at := quote.text.find(coined)) >= 0:
                start = quote.start + at
                yield ShownMark(start, start + len(coined), "coined", dependency.id)


def _unreachable(failures: list[CheckFailure], lane: int) -> Iterable[ShownMark]:
    """The receiver tokens that are chosen before the owner's note is read, or after it has gone."""
    for failure in failures:
        if failure.rule in ("dependency_delay", "dependency_window") and failure.lane == lane:
            assert failure.start is not None and failure.end is not None
            yield ShownMark(failure.start, failure.end, "unreachable", failure.dependency or "")


def cut(text: str, marks: list[ShownMark], borders: dict[int, int]) -> tuple[ShownRun, ...]:
    """`text` as runs; joined again they are the text. `borders` are block starts by character."""
    edges = {0, len(text), *borders}
    for mark in marks:
        edges.update((mark.start, mark.end))
    points = sorted(edge for edge in edges if 0 <= edge <= len(text))
    return tuple(
        ShownRun(
            text[start:end],
            tuple(mark for mark in marks if mark.start <= start and end <= mark.end),
            borders.get(start),
        )
        for start, end in pairwise(points)
    )


def _by_paragraph(
    runs: tuple[ShownRun, ...], spans: tuple[tuple[int, int], ...]
) -> list[list[ShownRun]]:
    """Runs sorted into paragraphs; the break between two paragraphs is not shown, its border is."""
    parts: list[list[ShownRun]] = [[] for _ in spans]
    at, pending = 0, None
    for run in runs:
        border = run.block if run.block is not None else pending
        pending, start = None, at
        at += len(run.text)
        for index, (first, last) in enumerate(spans):
            piece = run.text[max(first, start) - start : max(min(last, at) - start, 0)]
            if piece and start < last and at > first:
                parts[index].append(ShownRun(piece, run.marks, border))
                border = None
        pending = border
    return parts


def _dependencies(document: TaughtDocument, tokens: DocumentTokens) -> dict[str, PlacedDependency]:
    placed: dict[str, PlacedDependency] = {}
    for dependency in document.answer.dependencies:
        if max(dependency.owner.lane, dependency.receiver.lane) < len(tokens.lanes):
            place = place_dependency(dependency, tokens.lanes)
            if place is not None:
                placed[dependency.id] = place
    return placed
