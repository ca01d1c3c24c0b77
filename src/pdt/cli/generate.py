"""`pdt generate`: three lanes write a document from a source and a request."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pdt.cli.options import AsJson, opening
from pdt.errors import PdtError, UsageError
from pdt.model.names import as_written
from pdt.sources.own_text import own_text

if TYPE_CHECKING:
    from rich.console import Console

    from pdt.generation.events import Done, Event
    from pdt.generation.ledger import Ledger
    from pdt.generation.loop import Generation
    from pdt.generation.writer import Writer

SOURCE_BYTES = 4 << 20
"""No source of a supported prompt is larger."""

ModelDirectory = Annotated[
    Path,
    typer.Option(
        "--model",
        parser=as_written,
        metavar="MODEL",
        help="A model directory, a checkpoint of a run, or one of the package: nano, digest.",
    ),
]
Trunk = Annotated[str | None, typer.Option(help="Where the trunk's weights lie now.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set one key of generation, as in top_p=0.9.", show_default=False),
]
Interventions = Annotated[
    list[str] | None,
    typer.Option("--intervene", help="An edit such as swap-plans:0,1 or remove-notes@4."),
]
AsEvents = Annotated[
    bool, typer.Option("--events", help="Print every event, one JSON object a line.")
]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", help="Write a page that links every sentence to its source."),
]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="Save a trace to this file.")]


def generate(
    source: Annotated[
        str,
        typer.Argument(
            help="Your article (.md, .txt, .html), - for stdin, or taught documents (.jsonl)."
        ),
    ],
    model: ModelDirectory,
    request: Annotated[
        str | None, typer.Option("--request", help="What to write about it.")
    ] = None,
    record: Annotated[
        str | None, typer.Option("--record", help="Which taught document; default: the first.")
    ] = None,
    trunk: Trunk = None,
    max_tokens: Annotated[int | None, typer.Option(help="New tokens a lane may write.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 takes the likeliest token.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the lanes' random streams.")] = None,
    overrides: Settings = None,
    intervene: Interventions = None,
    trace: TraceFile = None,
    html: HtmlFile = None,
    as_json: AsJson = False,
    as_events: AsEvents = False,
) -> None:
    """Write a document in parallel sections. --set takes top_k, drafts and the like."""
    if as_json and as_events:
        raise UsageError("--json and --events exclude each other.")
    text, asked = read_task(source, request, record)
    check_new_file(trace, "--trace")
    check_new_file(html, "--html")
    if trace is not None and html is not None and trace.resolve() == html.resolve():
        raise UsageError(f"--trace and --html both name {trace}. Give each a file of its own.")

    from pdt.generation.card import remark
    from pdt.generation.interventions import parse_intervention
    from pdt.generation.settings import settings_from
    from pdt.generation.writer import Writer

    edits = [parse_intervention(spec) for spec in intervene or ()]
    settings = settings_from(
        overrides or (), max_tokens=max_tokens, temperature=temperature, seed=seed
    )
    with opening(model):
        writer = Writer.load(model, trunk=trunk)
    if (said := remark(writer.model, writer.tokenizer, text)) is not None:
        print(f"Note: {said}", file=sys.stderr)
    stop = threading.Event()
    generation = writer.begin(
        [(text, asked)], settings, interventions=edits, should_stop=stop.is_set
    )
    heard: list[Event] = []
    done = show(
        generation,
        stop,
        title=model.name,
        intervene=intervene or [],
        as_events=as_events,
        hear=heard.append,
    )
    warn_out_of_range(writer, text, done, heard)
    say(generation, done, as_json=as_json, as_events=as_events)
    keep(
        (trace, partial(write_trace, generation)),
        (html, partial(write_page, source=text, request=asked, model=model.name, heard=heard)),
    )
    if stop.is_set():
        raise typer.Exit(130)


def show(
    generation: "Generation",
    stop: threading.Event,
    *,
    title: str,
    intervene: list[str],
    as_events: bool,
    hear: "Callable[[Event], None]" = lambda event: None,
) -> "Done":
    """Run it, stoppable by Ctrl-C: live columns on a terminal, a line an event, or quiet."""
    from rich.console import Console
    from rich.live import Live

    from pdt.generation.events import Done, Round, as_json
    from pdt.generation.live import LiveView

    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    console = Console(stderr=True)
    view = LiveView(generation.model.config.lanes.count, title, intervene)
    draw = sys.stdout.isatty() and console.is_terminal and not as_events
    result: Done | None = None
    try:
        with Live(view, console=console, refresh_per_second=12, transient=True) as live:
            if not draw:
                live.stop()
            for event in generation.events():
                view.take(event)
                if not isinstance(event, Round):
                    hear(event)
                if as_events:
                    print(json.dumps(as_json(event), ensure_ascii=False), flush=True)
                if isinstance(event, Done):
                    result = event
    finally:
        signal.signal(signal.SIGINT, before)
    assert result is not None
    return result


def keep(*files: tuple[Path | None, Callable[[Path], None]]) -> None:
    """Write what was asked for beside the text; a file that cannot be written costs no other."""
    troubles = []
    for path, write in files:
        try:
            if path is not None:
                write(path)
        except OSError as error:
            troubles.append(f"{path} could not be written: {error.strerror or error}.")
    if troubles:
        remedy = "The text is whole. Write it again, with space for what stands beside it."
        raise PdtError("\n".join([*troubles, remedy]))


def write_trace(generation: "Generation", path: Path) -> None:
    """Everything that a replay needs."""
    from pdt.generation.trace import save_trace, trace_of

    save_trace(trace_of(generation), path)


def write_page(path: Path, *, source: str, request: str, model: str, heard: "list[Event]") -> None:
    """The page of the first document, put in place when it is whole."""
    from pdt.generation.events import Done
    from pdt.generation.page import Generated, render_generated
    from pdt.provenance import atomic_path

    done = heard[-1]
    assert isinstance(done, Done)
    page = render_generated(Generated(source, request, model, done.documents[0], heard, done))
    with atomic_path(path) as beside:
        beside.write_text(page, encoding="utf-8")


def warn_out_of_range(writer: "Writer", source: str, done: "Done", heard: "list[Event]") -> None:
    """Say so, on stderr, where a text shows itself to be none that the model can write about."""
    from pdt.generation.in_range import signs_out_of_range

    config = writer.model.config
    tokens = len(writer.tokenizer.encode(source).ids)
    if signs := signs_out_of_range(config, source, tokens, done.documents[0], heard):
        learned = config.records.limits.source_tokens
        print(
            f"Note: this text is out of the model's range: {'; '.join(signs)}. Give it plain prose "
            f"of {learned} tokens.",
            file=sys.stderr,
        )


def say(generation: "Generation", done: "Done", *, as_json: bool, as_events: bool) -> None:
    """The document, or its JSON; what it does not say itself; a ledger for who watches."""
    from rich.console import Console

    from pdt.generation.events import as_json as event_json

    if as_json:
        print(json.dumps(event_json(done), ensure_ascii=False, indent=2))
    elif not as_events:
        print(done.documents[0].text)
        if sys.stderr.isatty():
            print_ledger(done, Console(stderr=True))
    sys.stdout.flush()
    if said := asides(generation, done):
        print(f"Note: {', '.join(said)}.", file=sys.stderr)


def asides(generation: "Generation", done: "Done") -> list[str]:
    """What is wrong with a lane, and what was asked for and did not happen."""
    said = [f"lane {lane} {what}" for lane, what in enumerate(done.ledger.troubles[0]) if what]
    bare = [str(k) for row in done.ledger.without_nodes[:1] for k, none in enumerate(row) if none]
    if len(bare) == 1:
        said.append(f"lane {bare[0]} was planned without a node and has its likeliest one")
    elif bare:
        said.append(f"lanes {', '.join(bare)} were planned without a node and have their likeliest")
    last = (done.ledger.rounds - 1) // generation.model.config.lanes.block_tokens
    late = sorted({edit.from_block for edit in generation.interventions if edit.from_block > last})
    if late:
        blocks = ", ".join(map(str, late))
        said.append(f"no edit from block {blocks} on: the text ends in block {last}")
    return said


def check_new_file(file: Path | None, flag: str) -> None:
    """Refuse a file that exists or cannot be written, before anything is paid for."""
    if file is None:
        return
    if file.exists():
        raise UsageError(f"{file} exists. Choose another {flag}, or remove it.")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise UsageError(
            f"{file.parent} is not a directory that can be written.\n"
            f"Make it, or choose another {flag}."
        )


def print_ledger(done: "Done", console: "Console") -> None:
    """Depth, arithmetic, memory and time, apart."""
    ledger = done.ledger
    seconds = {
        part: f"{ledger.seconds.get(part, 0):.2f} s" for part in ("plan", "prefill", "decode")
    }
    lengths = ledger.lane_lengths[0]
    megabytes = [
        f"{size / 1e6:,.1f} MB"
        for size in (
            ledger.shared_cache_bytes,
            ledger.private_cache_bytes,
            ledger.peak_memory_bytes,
        )
    ]
    lines = [
        f"depth       {ledger.rounds} rounds for {sum(lengths)} tokens "
        f"({' + '.join(map(str, lengths))}), span reduction {ledger.span_reductions[0]:.2f}",
        *_drafted(ledger),
        f"arithmetic  {ledger.weights_read_per_round / 1e6:,.0f} M weights read, "
        f"{ledger.multiply_adds_per_round / 1e6:,.0f} M multiply-adds a round",
        f"memory      shared prompt cache {megabytes[0]}, private {megabytes[1]}, "
        f"peak {megabytes[2]}",
        f"time        plan {seconds['plan']}, prefill {seconds['prefill']}, first token "
        f"{min(ledger.first_token_seconds[0]):.2f} s, decode {seconds['decode']}, "
        f"barriers {ledger.seconds.get('barrier', 0):.3f} s",
    ]
    console.print("\n".join(lines), style="dim", highlight=False, soft_wrap=True)


def _drafted(ledger: "Ledger") -> list[str]:
    drafted, accepted = (
        sum(map(sum, tokens)) for tokens in (ledger.drafted_tokens, ledger.accepted_tokens)
    )
    if not drafted:
        return []
    return [
        f"drafts      {accepted} of {drafted} drafted tokens accepted, "
        f"{ledger.accepted_per_round:.2f} a round"
    ]


def read_task(source: str, request: str | None, record: str | None) -> tuple[str, str]:
    """The source's text and the request: a taught document brings its own, a file needs one."""
    if Path(source).suffix not in (".jsonl", ".json"):
        if record is not None:
            raise UsageError("--record chooses among taught documents; the source is a text.")
        raw = source_text(source)
        if request is None:
            raise UsageError('Say what to write: --request "…".')
        text = own_text(raw, "" if source == "-" else Path(source).suffix.lower())
        if not text:
            raise UsageError(f"{source} holds no paragraph of prose. Give some text.")
        return text, request
    from pdt.records.inputs import read_documents

    if not Path(source).is_file():
        raise UsageError(f"{source} is not a file. `pdt chronicle write` makes taught documents.")
    first = None
    for _, document in read_documents([Path(source)]):
        if record in (None, document.record_id):
            return document.article.text, request or document.answer.request
        first = first or document.record_id
    if first is None:
        raise UsageError(f"{source} is empty.")
    raise UsageError(
        f"{source} holds no record {record!r}.\nGive one that it has, such as {first}."
    )


def source_text(source: str) -> str:
    """A text file or standard input, whole, as UTF-8."""
    if source == "-":
        data = sys.stdin.buffer.read(SOURCE_BYTES + 1)
        name = "standard input"
    else:
        path = Path(source)
        name = str(path)
        if path.is_dir() and (taught := sorted(path.glob("*.jsonl"))):
            raise UsageError(f"{path} is a directory. Give {taught[0]}.")
        if not path.is_file():
            raise UsageError(f"{path} is not a file. Give a text or Markdown file, or -.")
        if path.stat().st_size > SOURCE_BYTES:
            raise UsageError(f"{path} has over {SOURCE_BYTES >> 20} MB; no prompt takes that much.")
        data = path.read_bytes()
    if len(data) > SOURCE_BYTES:
        raise UsageError(f"{name} has over {SOURCE_BYTES >> 20} MB; no prompt takes that much.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error}.\nConvert it first.") from error
    if "\x00" in text:
        raise UsageError(f"{name} holds zero bytes; it is not a text file.")
    if not text.strip():
        raise UsageError(f"{name} is empty. Give some text.")
    return text
