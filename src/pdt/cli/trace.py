"""`pdt trace`: show, draw, replay and continue a saved generation."""

import json
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pdt.cli.generate import (
    AsEvents,
    Interventions,
    ModelDirectory,
    TraceFile,
    Trunk,
    check_new_file,
    keep,
    say,
    show,
    write_trace,
)
from pdt.cli.options import AsJson, opening
from pdt.errors import PdtError

app = typer.Typer(help="Show, draw, replay and continue saved generations.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A trace saved with --trace.")]


@app.command("show")
def show_trace(file: File, as_json: AsJson = False) -> None:
    """Print what a trace holds."""
    from rich.console import Console
    from rich.markup import escape

    from pdt.generation.trace import load_trace

    trace = load_trace(file)
    if as_json:
        print(json.dumps(trace.model_dump(mode="json"), ensure_ascii=False, indent=2))
        return
    console = Console(highlight=False)
    console.print(f"model {trace.model_digest[:16]}, {len(trace.codes)} barriers")
    for spec in trace.interventions:
        console.print(f"intervention {escape(json.dumps(spec))}")
    for document, lanes in enumerate(trace.lanes):
        console.print(
            f"[bold]document {document}[/], prompt of {len(trace.prompts[document])} tokens"
        )
        for lane, wrote in enumerate(lanes):
            console.print(f"  [bold]lane {lane}[/], {len(wrote.tokens)} tokens, {wrote.reason}")
            console.print(escape(wrote.text.strip()), style="dim")
            codes = [
                " ".join(f"{c:02x}" for c in block[document][lane])
                for block, published in zip(trace.codes, trace.published, strict=True)
                if published[document][lane]
            ]
            console.print(f"  notes: {' | '.join(codes) or 'none'}")


@app.command("draw")
def draw_trace(
    file: File,
    model: ModelDirectory,
    svg: Annotated[Path, typer.Option(help="The picture to write.")],
    trunk: Trunk = None,
    document: Annotated[int, typer.Option(min=0, help="Which document of the trace.")] = 0,
    mark: Annotated[list[str] | None, typer.Option(help="A word that is to stand out.")] = None,
) -> None:
    """Draw a document as it was written: its lanes side by side, notes at the barriers (SVG)."""
    from pdt.generation.picture import draw_picture
    from pdt.generation.trace import check_model, load_trace
    from pdt.generation.writer import Writer
    from pdt.provenance import atomic_path

    trace = load_trace(file)
    with opening(model):
        writer = Writer.load(model, trunk=trunk)
    check_model(writer.model, trace)
    picture = draw_picture(trace, document, writer.tokenizer, mark or ())
    with atomic_path(svg) as beside:
        beside.write_text(picture, encoding="utf-8")
    print(svg)
    wrote = " ".join(lane.text for lane in trace.lanes[document])
    if absent := [word for word in mark or () if word not in wrote]:
        print(f"Note: no lane wrote {', '.join(absent)}.", file=sys.stderr)


@app.command("replay")
def replay_trace(file: File, model: ModelDirectory, trunk: Trunk = None) -> None:
    """Run the generation again, and fail at the first difference."""
    from pdt.generation.replay import differences, replay
    from pdt.generation.trace import load_trace
    from pdt.generation.writer import Writer

    trace = load_trace(file)
    with opening(model):
        writer = Writer.load(model, trunk=trunk)
    generation = replay(writer.model, trace, writer.tokenizer)
    for _ in generation.events():
        pass
    found = differences(trace, generation)
    if found:
        raise PdtError("\n".join([f"{file} does not replay.", *(f"  {line}" for line in found)]))
    print(f"{file}: the same, {sum(len(w.tokens) for row in trace.lanes for w in row)} tokens")


@app.command("continue")
def continue_trace(
    file: File,
    model: ModelDirectory,
    block: Annotated[int, typer.Option(help="First block to write anew.")],
    trunk: Trunk = None,
    intervene: Interventions = None,
    trace: TraceFile = None,
    as_json: AsJson = False,
    as_events: AsEvents = False,
) -> None:
    """As traced up to a barrier, then on under further interventions."""
    from pdt.generation.interventions import parse_intervention
    from pdt.generation.replay import continue_from
    from pdt.generation.trace import load_trace
    from pdt.generation.writer import Writer

    check_new_file(trace, "--trace")
    edits = [parse_intervention(spec) for spec in intervene or ()]
    saved = load_trace(file)
    with opening(model):
        writer = Writer.load(model, trunk=trunk)
    generation = continue_from(writer.model, saved, block, edits, writer.tokenizer)
    stop = threading.Event()
    generation.should_stop = stop.is_set
    done = show(generation, stop, title=model.name, intervene=intervene or [], as_events=as_events)
    say(generation, done, as_json=as_json, as_events=as_events)
    keep((trace, partial(write_trace, generation)))
    if stop.is_set():
        raise typer.Exit(130)
