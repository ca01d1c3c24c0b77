"""One page of what lanes wrote: every sentence linked to the source sentence that bears it out.

The page is whole by itself: no script, no request, and every text in it is escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from pdt.generation.events import Barrier, DocumentResult, Done, Event, PlanReady
from pdt.sentences.support import (
    SourceSentence,
    WrittenSentence,
    borne_out,
    paragraphs_of,
    source_sentences,
    support_of,
    words_told,
)


@dataclass(frozen=True)
class Generated:
    """What the page shows of one document."""

    source: str
    request: str
    model: str
    result: DocumentResult
    events: Sequence[Event]
    done: Done
    edits: Sequence[str] = ()
    """Interventions, in the words they were asked for."""


def render_generated(shown: Generated) -> str:
    """The whole page."""
    theirs = source_sentences(shown.source)
    told = {section.lane: borne_out(section.text, theirs) for section in shown.result.sections}
    owners = {
        sentence.source: lane
        for lane, sentences in told.items()
        for sentence in sentences
        if sentence.source is not None
    }
    counts = support_of([section.text for section in shown.result.sections], shown.source)
    said_before: set[frozenset[str]] = set()
    sections = "".join(
        _section(place, section.lane, section.text, told[section.lane], said_before)
        for place, section in enumerate(shown.result.sections, start=1)
    )
    meta = (
        f"{counts.borne_out} of {counts.sentences} sentences stand on a source sentence · "
        f"{counts.repeated} said before · model {shown.model}"
    )
    if shown.edits:
        meta += f" · under {', '.join(shown.edits)}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(shown.request)}</title><style>{_style()}</style></head><body>
<h1>{escape(shown.request)}</h1><p class="meta">{escape(meta)}</p>
<div class="board">{sections}</div>
<h2>The source</h2><div class="source">{_source(shown.source, theirs, owners)}</div>
{_notes(shown.events)}{_ledger(shown.done)}
</body></html>
"""


def _style() -> str:
    return (resources.files("pdt.generation") / "page.css").read_text(encoding="utf-8")


def _section(
    place: int,
    lane: int,
    text: str,
    told: Sequence[WrittenSentence],
    said_before: set[frozenset[str]],
) -> str:
    """One lane's column; what it says joins what was said before it."""
    sentences = iter(told)
    body = ""
    for paragraph in paragraphs_of(text):
        parts, left = [], paragraph
        while left.strip():
            sentence = next(sentences)
            words = words_told(sentence.text)
            parts.append(_sentence(sentence, again=words in said_before))
            said_before.add(words)
            left = left[left.index(sentence.text) + len(sentence.text) :]
        body += f"<p>{' '.join(parts)}</p>"
    return f'<section class="lane{lane}"><h2>{place} · lane {lane}</h2>{body}</section>'


def _sentence(sentence: WrittenSentence, *, again: bool) -> str:
    text = escape(sentence.text)
    if again:
        text = f'<span class="again" title="said before">{text}</span>'
    if sentence.source is None:
        near = f"nothing in the source bears this out; {sentence.share:.0%} of its words are near"
        return f'<span class="bad" title="{near}">{text}</span>'
    return f'<a href="#s{sentence.source}">{text}<sup>{sentence.source + 1}</sup></a>'


def _source(text: str, sentences: Sequence[SourceSentence], owners: Mapping[int, int]) -> str:
    by_paragraph: dict[int, list[tuple[int, SourceSentence]]] = {}
    for number, sentence in enumerate(sentences):
        by_paragraph.setdefault(sentence.paragraph, []).append((number, sentence))
    parts = []
    for place, paragraph in enumerate(paragraphs_of(text)):
        if place not in by_paragraph:
            parts.append(f"<h2>{escape(paragraph.lstrip('# '))}</h2>")
            continue
        spans = [
            f'<span id="s{number}"{_told_by(owners.get(number))}>{escape(sentence.text)}'
            f"<sup>{number + 1}</sup></span>"
            for number, sentence in by_paragraph[place]
        ]
        parts.append(f"<p>{' '.join(spans)}</p>")
    return "".join(parts)


def _told_by(lane: int | None) -> str:
    return "" if lane is None else f' class="told lane{lane}" title="told by lane {lane}"'


def _notes(events: Sequence[Event]) -> str:
    plans = [event for event in events if isinstance(event, PlanReady)]
    barriers = [event for event in events if isinstance(event, Barrier)]
    if not plans:
        return ""
    rows = "".join(
        f"<tr><td>{lane}<td>{len(nodes)}<td>{_written(lane, barriers)}</tr>"
        for lane, nodes in enumerate(plans[0].valid_nodes)
    )
    notes = "".join(
        f"<tr><td>{barrier.block}<td>{note.lane}<td>{' '.join(map(str, note.codes))}</tr>"
        for barrier in barriers
        for note in barrier.notes
    )
    return (
        "<h2>Plans</h2><table><tr><th>lane<th>nodes<th>node written in each block</tr>"
        f"{rows}</table><h2>Notes</h2><table><tr><th>block<th>lane<th>codes</tr>{notes}</table>"
    )


def _written(lane: int, barriers: Sequence[Barrier]) -> str:
    nodes = [note.plan_node for barrier in barriers for note in barrier.notes if note.lane == lane]
    return " ".join("–" if node is None else str(node) for node in nodes) or "–"


def _ledger(done: Done) -> str:
    ledger = done.ledger
    rows = {
        "rounds": f"{ledger.rounds:,}",
        "tokens": f"{ledger.tokens:,}",
        "span reduction (Eq. 6)": f"{ledger.span_reductions[0]:.2f}",
        "weights read a round": f"{ledger.weights_read_per_round:,}",
        "peak memory": f"{ledger.peak_memory_bytes / 1e6:,.0f} MB",
        "tokens a second": f"{ledger.tokens_per_second:,.1f}",
        "seconds": " · ".join(f"{part} {value:.2f}" for part, value in ledger.seconds.items()),
    }
    body = "".join(
        f"<tr><td>{escape(name)}<td>{escape(value)}</tr>" for name, value in rows.items()
    )
    return f"<h2>Ledger</h2><table>{body}</table>"
