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
    as_json: AsJson = False,
) -> None:
    """A complete answer: packed, serial, one lane, transformers, llama.cpp."""
    from pdt.bench.latency import bench_latency

    if gguf is not None and not gguf.is_file():
        raise UsageError(f"{gguf} is not a file. `make weights` fetches SmolLM2's.")
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
