"""A source as one self-contained page: no request leaves it, and every text in it is escaped."""

from html import escape

from pdt.sources.citations import citation_id
from pdt.sources.prose import ProseParagraph
from pdt.sources.reading import SourceReading
from pdt.sources.source_gates import cited_works
from pdt.sources.verdict import Requirement, SourceVerdict

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d46; --bad: #b3372f; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem;
  padding: 0 1rem; }
h1 { margin: 0; } .meta { opacity: .7; margin: .2rem 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .9rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem;
  border-top: 1px solid var(--line); }
.passed { color: var(--good); } .failed { color: var(--bad); font-weight: 600; }
.verdict { font-size: 1.2rem; font-weight: 600; margin: 1rem 0; }
p.prose { position: relative; padding-left: 3.2rem; }
p.prose > b { position: absolute; left: 0; opacity: .6;
  font: 600 .8rem/1.9 ui-monospace, monospace; }
sup a { text-decoration: none; font-size: .75rem; padding: 0 .1rem; }
li { overflow-wrap: anywhere; } li:target { background: #fd07; }
details { font-size: .85rem; } summary { cursor: pointer; }
"""


def render_page(reading: SourceReading, verdict: SourceVerdict) -> str:
    """The whole page."""
    bundle = reading.bundle
    word, kind = ("accepted", "passed") if verdict.accepted else ("rejected", "failed")
    meta = [
        f"{bundle.project}, page {bundle.page_id}, revision {bundle.revision_id}",
        f"revised {bundle.revised_at:%d %b %Y}, acquired {bundle.acquired_at:%d %b %Y}",
        bundle.licence.name,
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(bundle.title)} · source</title>
<style>{_STYLE}</style></head><body>
<h1>{escape(bundle.title)}</h1>
<p class="meta">{escape(" · ".join(meta))}</p>
<p class="meta">{escape(bundle.licence.attribution)}</p>
<p class="meta">bundle {escape(bundle.bundle_id)}</p>
<p class="verdict {kind}">{word}</p>
{_gates(verdict)}
<h2>What a model sees</h2>
{_text(reading)}
<h2>Citations</h2>
{_citations(reading)}
<h2>Cited works</h2>
{_works(reading)}
<h2>Left out</h2>
{_left_out(reading)}
</body></html>
"""


def _gates(verdict: SourceVerdict) -> str:
    rows = []
    for row in verdict.source_gates:
        for place, requirement in enumerate(row.requirements):
            name = "" if place else row.row.replace("_", " ")
            rows.append(f"<tr><th>{name}</th>{_requirement(requirement)}</tr>")
    head = "<tr><th>row</th><th>requirement</th><th>measured</th><th>required</th><th></th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _requirement(requirement: Requirement) -> str:
    evidence = "".join(f"<li>{escape(line)}</li>" for line in requirement.evidence)
    folded = f"<details><summary>evidence</summary><ul>{evidence}</ul></details>"
    kind, mark = ("passed", "✓") if requirement.passed else ("failed", "✗")
    return (
        f"<td>{escape(requirement.name.replace('_', ' '))}</td>"
        f"<td>{escape(str(requirement.measured))}{folded if evidence else ''}</td>"
        f'<td>{escape(requirement.required)}</td><td class="{kind}">{mark}</td>'
    )


def _text(reading: SourceReading) -> str:
    numbers = {name: n for n, name in enumerate(reading.html.works_of_note, start=1)}
    paragraphs = dict(reading.html.paragraphs)
    parts = []
    for section in reading.article.sections:
        if section.path:
            level = min(6, len(section.path) + 2)
            parts.append(f"<h{level}>{escape(section.path[-1])}</h{level}>")
        for paragraph in section.paragraphs:
            kept = paragraphs[paragraph.id]
            parts.append(
                f'<p class="prose" id="{escape(paragraph.id)}" title="node {escape(kept.node)}">'
                f"<b>{escape(paragraph.id)}</b>{escape(paragraph.text)}{_marks(kept, numbers)}</p>"
            )
    return "\n".join(parts)


def _marks(paragraph: ProseParagraph, numbers: dict[str, int]) -> str:
    marks = [
        f'<a href="#{escape(citation_id(occurrence.note))}">[{numbers[occurrence.note]}]</a>'
        for occurrence in paragraph.occurrences
        if occurrence.note in numbers
    ]
    return f" <sup>{''.join(marks)}</sup>" if marks else ""


def _citations(reading: SourceReading) -> str:
    notes = reading.html.notes
    items = [
        f'<li id="{escape(citation_id(name))}">{escape(notes[name].text)} '
        f"<small>→ {escape(', '.join(works))}</small></li>"
        for name, works in reading.html.works_of_note.items()
    ]
    return f"<ol>{''.join(items)}</ol>"


def _works(reading: SourceReading) -> str:
    head = "<tr><th>uses</th><th>work</th><th>scholarly or institutional because</th></tr>"
    rows = [
        f"<tr><td>{work.occurrences}</td><td>{escape(work.text)}<br><small>{escape(work.id)} "
        f"{escape(reading.html.works[work.id].key)}</small></td>"
        f"<td>{escape(work.reason or '–')}</td></tr>"
        for work in cited_works(reading)
    ]
    return f"<table>{head}{''.join(rows)}</table>"


def _left_out(reading: SourceReading) -> str:
    items = [
        f"<li>{count} × {escape(reason)}</li>"
        for reason, count in reading.html.prose.left_out.most_common()
    ]
    return f"<ul>{''.join(items)}</ul>"
