"""A written document as Markdown, and as one page that needs nothing else."""

from pdt.generation.events import Barrier, Done, PlanReady
from pdt.generation.page import Generated, render_generated
from pdt.serve.writing import Writing


def as_markdown(writing: Writing) -> str:
    """The request as a heading, then the sections in reading order, and how it came about."""
    done = _done(writing)
    lines = [f"# {_one_line(writing.asked.request)}", "", done.documents[0].text, "", "---", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(writing, done)]
    return "\n".join(lines) + "\n"


def as_html(writing: Writing, model_name: str) -> str:
    """The page of `pdt generate --html`: every sentence is a link to its source sentence."""
    done = _done(writing)
    entries = writing.log.entries
    heard = [entry for entry in entries if isinstance(entry, PlanReady | Barrier)]
    return render_generated(
        Generated(
            source=writing.asked.source,
            request=writing.asked.request,
            model=model_name,
            result=done.documents[0],
            events=heard,
            done=done,
            edits=writing.interventions(),
        )
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
