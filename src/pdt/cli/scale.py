"""`pdt scale`: what must be looked at before a larger trunk is asked for."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, busy

app = typer.Typer(help="Audit a failed executor before a larger trunk.", no_args_is_help=True)


@app.callback()
def scale() -> None:
    """Audit a failed executor before a larger trunk."""


@app.command()
def audit(
    verdict: Annotated[Path, typer.Argument(help="A directory of `pdt eval run`.")],
    run: Annotated[Path, typer.Option("--run", help="The run whose last checkpoint it judged.")],
    held_out: Annotated[Path, typer.Option(help="The records it was judged on.")],
    out: Annotated[Path, typer.Option("--out", help="The audit's file, written once.")],
    records: Annotated[
        Path | None,
        typer.Option(
            help="The records it was trained on; by default where the run says.",
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        int, typer.Option(min=2, help="How many documents of each corpus are looked at.")
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Six checks of a failed executor, each with its evidence. Exit code 1 when one fails.

    Data alignment, ownership labels, routing heads, optimization, cache behaviour, plan delivery.
    A run on a larger rung asks for the file: `pdt train run --scale-audit`.
    """
    from pdt.screen.scale import audit_scale, open_audit, write_audit

    with busy("looking at the run"):
        opened = open_audit(verdict, run, held_out, records=records, documents=documents)
        found = audit_scale(opened)
        write_audit(found, out)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        table = Table("check", "", "what was found", box=None, pad_edge=False)
        for check in found.checks:
            mark = "[green]passed[/]" if check.passed else "[red]FAILED[/]"
            table.add_row(check.name, mark, check.said)
        Console().print(table)
        print(
            f"unmet: {', '.join(found.failed_gates)}\n{out}\nseal {found.seal}\n"
            + ("All six pass: the trunk may be what failed." if found.passed else
               "What failed here explains the executor before a larger trunk does.")
        )  # fmt: skip
    if not found.passed:
        raise typer.Exit(1)
