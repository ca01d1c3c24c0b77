"""`pdt bench`: ratios, measured here and now."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson
from pdt.errors import UsageError

if TYPE_CHECKING:
    from pdt.bench.latency import LatencyResult
    from pdt.model.kernels.matmul import Measured

app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)


@app.command("grouped")
def grouped(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(help="nano, smollm2-135m, smollm2-rank-16, 4b-slice; default: all."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=4, help="Interleaved repeats.")] = 31,
    as_json: AsJson = False,
) -> None:
    """One decode round: packed, as three one-lane rounds, and as plain memory reads."""
    from pdt.bench.grouped import SUBJECTS, bench_grouped

    chosen = subjects or list(SUBJECTS)
    for name in chosen:
        if name not in SUBJECTS:
            raise UsageError(f"There is no subject {name!r}. Subjects: {', '.join(SUBJECTS)}.")
    table = Table(
        "subject", "packed", "3 separate", "memory", "packed / separate", "packed / memory",
        title="One decode round in ms, medians (quartiles)", title_justify="left",
    )  # fmt: skip
    rows = []
    with Console(stderr=True).status("measuring") as status:
        for result in bench_grouped(chosen, repeats=repeats):
            status.update(f"measured {result.subject}")
            apart, memory = result.to_separate, result.to_memory
            times = (result.packed, result.separate, result.memory)
            table.add_row(
                f"{result.subject}\n{result.round_bytes / 1e6:.0f} MB",
                *(f"{timing.median * 1e3:.2f}" for timing in times),
                f"{apart[0]:.2f} ({apart[1]:.2f}–{apart[2]:.2f})\n"
                f"limit {result.limit_to_separate:.2f}",
                f"{memory[0]:.2f} ({memory[1]:.2f}–{memory[2]:.2f})\nlimit 1",
            )
            rows.append(
                {
                    "subject": result.subject,
                    "round_bytes": result.round_bytes,
                    "packed_seconds": result.packed.median,
                    "separate_seconds": result.separate.median,
                    "memory_seconds": result.memory.median,
                    "packed_over_separate": apart,
                    "limit_over_separate": result.limit_to_separate,
                    "packed_over_memory": memory,
                }
            )
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        Console().print(table)


@app.command("latency")
def latency(
    subject: Annotated[str, typer.Argument(help="A preset: nano or smollm2-135m.")] = "nano",
    gguf: Annotated[
        Path | None, typer.Option(help="Real weights for the preset; without, random ones.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the prompt.")] = 128,
    lane_tokens: Annotated[int, typer.Option(min=8, help="Tokens each lane writes.")] = 64,
    repeats: Annotated[int, typer.Option(min=4, help="Interleaved repeats.")] = 7,
    drafts: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Instead, the same answer with so many drafted tokens."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="With --drafts: a text, or taught documents (.jsonl).")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="With --text; default: its first words, to be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A complete answer: packed, serial, one lane, transformers, llama.cpp; or with drafts."""
    from pdt.bench.latency import bench_latency

    if gguf is not None and not gguf.is_file():
        raise UsageError(f"{gguf} is not a file. `make weights` fetches SmolLM2's.")
    if (drafts is None) != (text is None) or (request is not None and text is None):
        raise UsageError(
            "Drafts are measured on a text that the model writes about: give --drafts and --text."
        )
    if drafts is not None and text is not None:
        _drafts(subject, text, request, gguf, drafts, lane_tokens, repeats, as_json=as_json)
        return
    with Console(stderr=True).status(f"measuring {subject}"):
        result = bench_latency(
            subject,
            gguf=gguf,
            prompt_tokens=prompt_tokens,
            lane_tokens=lane_tokens,
            repeats=repeats,
        )
    if as_json:
        print(json.dumps(_latency_json(result), indent=2))
        return
    table = Table(
        "side", "seconds", "quartiles", "packed is faster by",
        title=f"{subject}: {prompt_tokens} prompt tokens, {lane_tokens} written by each lane",
        title_justify="left",
    )  # fmt: skip
    for name, timing in result.sides.items():
        gain, low, high = result.gain(name)
        table.add_row(
            name,
            f"{timing.median:.3f}",
            f"{timing.spread[0]:.3f}–{timing.spread[1]:.3f}",
            "" if name == "packed" else f"{gain:.2f}× ({low:.2f}–{high:.2f})",
        )
    console = Console()
    console.print(table)
    console.print(
        f"ceiling of packed against serial by weight traffic: {result.ceiling:.2f}×\n"
        f"barriers: {result.barrier_share:.2%} of decode time\n"
        f"prompt cache below the fork: {result.shared_over_expanded:.3f} of the expanded one\n"
        f"last quarter of rounds against the first: {result.late_over_early:.2f}×",
        highlight=False,
    )
    for reason in result.missing:
        console.print(f"not measured: {reason}", style="dim", highlight=False)


@app.command("duel")
def duel(
    subject: Annotated[str, typer.Argument(help="A preset.")] = "smollm2-135m",
    gguf: Annotated[
        Path | None, typer.Option(help="Real weights of it; default: random ones, no llama.cpp.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the source.")] = 128,
    lane_tokens: Annotated[int, typer.Option(min=8, help="Tokens each lane writes.")] = 64,
    repeats: Annotated[int, typer.Option(min=4, help="Interleaved repeats.")] = 5,
    only: Annotated[
        list[str] | None, typer.Option(help="Only sides whose name holds this; repeatable.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Also draw it, in this new file.")] = None,
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Count CPU seconds: for a busy machine, one thread.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """One answer of several sections: packed in every way, and all peers, in one run."""
    import time

    from pdt.bench.duel import bench_duel
    from pdt.bench.duel_chart import duel_svg
    from pdt.provenance import atomic_path, refuse_existing

    if gguf is not None and not gguf.is_file():
        raise UsageError(f"{gguf} is not a file. `make weights` fetches SmolLM2's.")
    if svg is not None:
        refuse_existing(svg)
    with Console(stderr=True).status(f"measuring {subject}") as status:
        result = bench_duel(
            subject, gguf=gguf, prompt_tokens=prompt_tokens, lane_tokens=lane_tokens,
            repeats=repeats, only=only or (), say=status.update,
            clock=time.process_time if cpu_time else time.perf_counter,
        )  # fmt: skip
    title = f"{subject}: {prompt_tokens} prompt tokens, {result.lanes} × {lane_tokens} written"
    title += f", threads: {result.threads}" + (", CPU seconds" if cpu_time else "")
    if svg is not None:
        with atomic_path(svg) as partial:
            partial.write_text(duel_svg(result, title), encoding="utf-8")
    if as_json:
        print(json.dumps(asdict(result), indent=2))
        return
    table = Table(
        "side", "seconds", "quartiles", "MB a round", "ms a round", "over reading its bytes",
        title=title, title_justify="left",
    )  # fmt: skip
    for side in result.sides:
        over, decode = side.over_reading(result.bytes_per_second), side.decode
        table.add_row(
            side.name,
            f"{side.timing.median:.3f}",
            f"{side.timing.spread[0]:.3f}–{side.timing.spread[1]:.3f}",
            f"{side.bytes_a_round / 1e6:,.0f}",
            "" if decode is None else f"{decode.median / side.rounds * 1e3:.2f}",
            "" if over is None else f"{over:.2f}",
        )
    console = Console()
    console.print(table)
    console.print(f"memory: {result.bytes_per_second / 1e9:.1f} GB/s, read with the rest")
    for goal in result.goals():
        console.print(goal, highlight=False)
    for reason in result.missing:
        console.print(f"not measured: {reason}", style="dim", highlight=False)


@app.command("packing")
def packing(
    model: Annotated[str, typer.Argument(help="A model of floats: a directory, or nano.")],
    text: Annotated[Path, typer.Argument(help="A text that the model has not learned from.")],
    tokens: Annotated[int, typer.Option(min=2, help="Tokens of it to read.")] = 1024,
    window: Annotated[int, typer.Option(min=2, help="Tokens read at once.")] = 256,
    as_json: AsJson = False,
) -> None:
    """What 8 and 4 bits cost in exactness: logits and perplexity on a text."""
    from pdt.bench.packing import bench_packing

    try:
        words = text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{text} cannot be read as UTF-8 text: {error}.") from error
    with Console(stderr=True).status(f"measuring {model}"):
        found = list(bench_packing(model, words, tokens=tokens, window=window))
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    table = Table(
        "numbers", "MB a round", "perplexity", "mean difference", "largest", "KL, nats", "same top",
        title=f"{model} on {found[0].tokens} tokens, against fp32", title_justify="left",
    )  # fmt: skip
    for one in found:
        table.add_row(
            one.numbers, f"{one.megabytes:,.0f}", f"{one.perplexity:.3f}",
            f"{one.mean_difference:.4f}", f"{one.largest_difference:.3f}", f"{one.divergence:.5f}",
            f"{one.agreement:.1%}",
        )  # fmt: skip
    Console().print(table)


@app.command("train")
def train(
    subject: Annotated[str, typer.Argument(help="A preset: nano or smollm2-135m.")] = "nano",
    documents: Annotated[int, typer.Option(min=1, help="Documents a batch.")] = 1,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the prompt.")] = 256,
    section_tokens: Annotated[int, typer.Option(min=1, help="Tokens of each section.")] = 128,
    repeats: Annotated[int, typer.Option(min=2, help="Interleaved repeats.")] = 7,
    prompts: Annotated[
        str, typer.Option(help="Prompt lengths to time, at the section length given.")
    ] = "256,512,1024",
    sections: Annotated[
        str, typer.Option(help="Section lengths to time, at the prompt length given.")
    ] = "64,128,256",
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Count CPU seconds: for a busy machine, one thread.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """A training step above the fork: packed, without barriers, with a copied prompt."""
    import time

    from pdt.bench.train import NAIVE, ONE_CALL, bench_growth, bench_train

    clock = time.process_time if cpu_time else time.perf_counter
    sizes = [(prompt_tokens, size) for size in _sizes("--sections", sections)]
    sizes += [(size, section_tokens) for size in _sizes("--prompts", prompts)]
    with Console(stderr=True).status(f"measuring {subject}"):
        result = bench_train(
            subject,
            documents=documents,
            prompt_tokens=prompt_tokens,
            section_tokens=section_tokens,
            repeats=repeats,
            clock=clock,
        )
        growth = list(bench_growth(subject, sizes, repeats=max(2, repeats // 2), clock=clock))
    against = {side: result.speed_against(side) for side in (ONE_CALL, NAIVE)}
    if as_json:
        report = {
            "subject": subject,
            "documents": documents,
            "prompt_tokens": prompt_tokens,
            "section_tokens": section_tokens,
            "documents_per_second": {side: result.rate(side) for side in result.sides},
            "packed_speed_over": against,
            "peak_bytes": result.peaks,
            "seconds_by_prompt_and_section": [(p, s, timing.median) for p, s, timing in growth],
        }
        print(json.dumps(report, indent=2))
        return
    unit = "CPU second" if cpu_time else "second"
    table = Table(
        "side", f"documents a {unit}", "speed of packed over it", "peak MB",
        title=f"{subject}: {documents} × ({prompt_tokens} prompt + 3 × {section_tokens} tokens)",
        title_justify="left",
    )  # fmt: skip
    for side in result.sides:
        gain = against.get(side)
        table.add_row(
            side,
            f"{result.rate(side):.2f}",
            "" if gain is None else f"{gain[0]:.2f} ({gain[1]:.2f}–{gain[2]:.2f})",
            f"{result.peaks[side] / 1e6:,.0f}",
        )
    console = Console()
    console.print(table)
    longer = Table("prompt", "section", "ms a document", title="packed", title_justify="left")
    for prompt, section, timing in growth:
        longer.add_row(str(prompt), str(section), f"{timing.median * 1e3:,.0f}")
    console.print(longer)


def _sizes(flag: str, text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",") if part]
    except ValueError:
        sizes = [0]
    if any(size < 1 for size in sizes):
        raise UsageError(f"{flag} {text!r} is not a list of lengths, for example 64,128,256.")
    return sizes


def _drafts(
    subject: str,
    text: str,
    request: str | None,
    gguf: Path | None,
    drafts: int,
    lane_tokens: int,
    repeats: int,
    *,
    as_json: bool,
) -> None:
    from pdt.bench.drafts import bench_drafts
    from pdt.cli.generate import read_task

    taught = Path(text).suffix == ".jsonl"
    source, asked = read_task(text, request if taught else request or "-", None)
    with Console(stderr=True).status(f"measuring {subject}"):
        result = bench_drafts(
            subject,
            source,
            asked if taught else request,
            gguf=gguf,
            drafts=drafts,
            lane_tokens=lane_tokens,
            repeats=repeats,
        )
    plain, ledger, rows = result.plain_ledger, result.ledger, len(result.ledger.lane_lengths[0])
    if as_json:
        report = {
            "subject": subject,
            "prompt_tokens": result.prompt_tokens,
            "tokens": ledger.tokens,
            "drafts": drafts,
            "rounds": {"plain": plain.rounds, "drafted": ledger.rounds},
            "rounds_saved": result.rounds_saved,
            "drafted_tokens": ledger.drafted_tokens[0],
            "accepted_tokens": ledger.accepted_tokens[0],
            "seconds": {"plain": result.plain.median, "drafted": result.drafted.median},
            "drafted_faster_by": result.gain,
            "round_seconds_by_rows": result.costs.seconds,
            "row_share": result.costs.share(rows),
        }
        print(json.dumps(report, indent=2))
        return
    table = Table(
        "side", "seconds", "quartiles", "rounds", "tokens a round",
        title=f"{subject}: {result.prompt_tokens} prompt tokens, {ledger.tokens} written",
        title_justify="left",
    )  # fmt: skip
    for name, timing, side in (
        ("packed", result.plain, plain),
        (f"packed, drafts of up to {drafts}", result.drafted, ledger),
    ):
        table.add_row(
            name,
            f"{timing.median:.3f}",
            f"{timing.spread[0]:.3f}–{timing.spread[1]:.3f}",
            str(side.rounds),
            f"{side.tokens / side.rounds:.2f}",
        )
    console = Console()
    console.print(table)
    gain, low, high = result.gain
    by_rows = ", ".join(f"{rows}: {1e3 * seconds:.1f} ms" for rows, seconds in result.costs.seconds)
    console.print(
        f"faster by {gain:.2f}× ({low:.2f}–{high:.2f}), rounds {result.rounds_saved:.2f}× fewer; "
        f"the text is the same\n"
        f"drafted {sum(ledger.drafted_tokens[0])}, accepted {sum(ledger.accepted_tokens[0])}\n"
        f"a round by its rows: {by_rows or 'not measured (PDT_ROW_COST)'}; one row more costs "
        f"{result.costs.share(rows):.2f} of a lane's share",
        highlight=False,
    )


def _latency_json(result: "LatencyResult") -> dict[str, object]:
    return {
        "subject": result.subject,
        "prompt_tokens": result.prompt_tokens,
        "lane_tokens": result.lane_tokens,
        "seconds": {name: timing.median for name, timing in result.sides.items()},
        "packed_faster_by": {name: result.gain(name) for name in result.sides},
        "ceiling": result.ceiling,
        "barrier_share": result.barrier_share,
        "shared_over_expanded_cache": result.shared_over_expanded,
        "late_over_early_rounds": result.late_over_early,
        "not_measured": list(result.missing),
    }


@app.command("matmul")
def matmul(
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew; what is kept stays as it is.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The ways to multiply matrices here: speed, error, and which one is used."""
    from dataclasses import asdict

    from pdt.model.kernels.matmul import Way, best_way, machine, measure, measured

    with Console(stderr=True).status("measuring"):
        found = [(measure if again else measured)(way) for way in (Way.ONEDNN, Way.BF16)]
    if as_json:
        ways = [{**asdict(way), "gain": way.gain, "exact": way.exact} for way in found]
        print(json.dumps({"machine": machine(), "used": best_way(), "ways": ways}, indent=2))
        return
    table = Table(
        "product", "default", *(way.way.value for way in found),
        title="GFLOP/s on one thread (largest error against float64)", title_justify="left",
    )  # fmt: skip
    shapes = {shape.shape: shape for way in found for shape in way.shapes}
    for name, shape in shapes.items():
        cells = [f"{shape.default_gigaflops:.0f} ({shape.default_error:.0e})"]
        for way in found:
            row = next((s for s in way.shapes if s.shape == name), None)
            cells.append("–" if row is None else f"{row.gigaflops:.0f} ({row.error:.0e})")
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    for way in found:
        console.print(f"{way.way}: {_verdict(way)}", highlight=False)
    console.print(f"FP32 products use: {best_way()}", highlight=False)


def _verdict(way: "Measured") -> str:
    if not way.shapes:
        return way.problem or "not measured: the cache ($PDT_CACHE) cannot be written"
    exact = "exact to fp32" if way.exact else "not exact to fp32"
    return f"{way.gain:.2f}× the default's speed, {exact}"


@app.command("sources")
def sources(
    directory: Annotated[Path, typer.Argument(help="A directory of bundles.")],
    repeats: Annotated[int, typer.Option(min=4, help="Interleaved repeats.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Articles a second, cleaned and judged, against a plain lxml walk of the same files."""
    from pdt.bench.sources import bench_sources
    from pdt.bench.timing import ratio
    from pdt.config import load_config

    with Console(stderr=True).status("measuring"):
        found = bench_sources(directory, load_config("canonical"), repeats=repeats)
    result = {
        "articles": found.articles,
        "megabytes": round(found.bytes / 1e6, 1),
        "cleaned_per_second": round(found.articles / found.cleaned.median, 1),
        "judged_per_second": round(found.articles / found.judged.median, 1),
        "lxml_walk_per_second": round(found.articles / found.walked.median, 1),
        "cleaned_over_walk": [round(x, 2) for x in ratio(found.cleaned, found.walked)],
        "judged_over_walk": [round(x, 2) for x in ratio(found.judged, found.walked)],
        "largest_megabytes": round(found.largest_bytes / 1e6, 2),
        "largest_memory_megabytes": round(found.largest_growth / 1e6, 1),
    }
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        for name, value in result.items():
            print(f"{name.replace('_', ' '):<26} {value}")


@app.command("serve")
def serve(
    model: Annotated[str, typer.Option(help="A model directory, or nano.")] = "nano",
    clients: Annotated[
        list[int] | None, typer.Option(min=1, max=64, help="Clients at once; default 1, 8, 32.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=2, help="Tokens each lane writes.")] = 64,
    repeats: Annotated[int, typer.Option(min=4, help="Interleaved repeats.")] = 5,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, help="Instead, watch memory so long at the most clients."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A server process on loopback against the library alone."""
    from pdt.bench.serve import bench_memory, bench_serve

    counts = clients or [1, 8, 32]
    if minutes is not None:
        with Console(stderr=True).status(f"{max(counts)} clients for {minutes} minutes"):
            watched = bench_memory(model, max(counts), tokens=tokens, minutes=minutes)
        if as_json:
            print(json.dumps(asdict(watched)))
            return
        table = Table("seconds", "resident MB", title=f"{watched.documents} documents")
        for seconds, size in watched.samples:
            table.add_row(f"{seconds:.0f}", f"{size / 1e6:.1f}")
        Console().print(table)
        return
    with Console(stderr=True).status("measuring"):
        results = bench_serve(model, counts, tokens=tokens, repeats=repeats)
    if as_json:
        rows = [asdict(one) | {"throughput": one.throughput} for one in results]
        print(json.dumps(rows, indent=2))
        return
    table = Table(
        "clients", "tokens/s served", "tokens/s alone", "served / alone", "added to a first token",
        title=f"{model}, {tokens} tokens a lane, medians (quartiles)", title_justify="left",
    )  # fmt: skip
    for one in results:
        middle, low, high = one.throughput
        table.add_row(
            str(one.clients),
            f"{one.tokens / one.served.median:.0f}",
            f"{one.tokens / one.alone.median:.0f}",
            f"{middle:.2f} ({low:.2f}–{high:.2f})",
            f"{one.added_first * 1e3:.0f} ms",
        )
    Console().print(table)
