"""A written document as Markdown, and as one page that needs nothing else."""

from pdt.generation.events import Barrier, Done
from pdt.serve.writing import Writing
from pdt.web.pages import Pages, folder


def as_markdown(writing: Writing) -> str:
    """The request as a heading, then the sections in reading order, and how it came about."""
    done = _done(writing)
    lines = [f"# {_one_line(writing.asked.request)}", "", done.documents[0].text, "", "---", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(writing, done)]
    return "\n".join(lines) + "\n"


def as_html(writing: Writing) -> str:
    """With its style inside and no script."""
    done = _done(writing)
    style = "".join(
        (folder("pdt.web", "static") / name).read_text(encoding="utf-8")
        for name in ("tokens.css", "base.css")
    )
    barriers = [event for event in writing.log.entries if isinstance(event, Barrier)]
    return Pages("pdt.serve").text(
        "export.html",
        style=style,
        request=writing.asked.request,
        sections=done.documents[0].sections,
        facts=_facts(writing, done),
        barriers=barriers,
        source=writing.asked.source,
    )


def _facts(writing: Writing, done: Done) -> list[tuple[str, str]]:
    ledger = done.ledger
    facts = [
        ("generation", writing.id),
        ("lanes in reading order", ", ".join(map(str, done.documents[0].lane_at_position))),
        ("tokens", " + ".join(map(str, ledger.lane_lengths[0]))),
        ("rounds", f"{ledger.rounds}, span reduction {ledger.span_reductions[0]:.2f}"),
    ]
    edits = ", ".join(writing.interventions())
    return [*facts, ("interventions", edits)] if edits else facts


def _done(writing: Writing) -> Done:
    assert writing.done is not None
    return writing.done


def _one_line(text: str) -> str:
    return " ".join(text.split())
