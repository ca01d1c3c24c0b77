"""`pdt bench`: ratios, measured here and now."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson
from pdt.errors import UsageError

app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)


@app.command("grouped")
def grouped(
    subjects: Annotated[
        list[str] | None, typer.Argument(help="nano, smollm2-135m, 4b-slice; default: all.")
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
        "subject", "MB a round", "packed ms", "3 separate ms", "memory ms",
        "packed / separate", "its limit", "packed / memory",
        title="One decode round, medians [quartiles]", title_justify="left",
    )  # fmt: skip
    rows = []
    with Console(stderr=True).status("measuring") as status:
        for result in bench_grouped(chosen, repeats=repeats):
            status.update(f"measured {result.subject}")
            apart, memory = result.to_separate, result.to_memory
            table.add_row(
                result.subject,
                f"{result.round_bytes / 1e6:.0f}",
                *(f"{t.median * 1e3:.2f}" for t in (result.packed, result.separate, result.memory)),
                f"{apart[0]:.2f} [{apart[1]:.2f}–{apart[2]:.2f}]",
                f"{result.limit_to_separate:.2f}",
                f"{memory[0]:.2f} [{memory[1]:.2f}–{memory[2]:.2f}]",
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
