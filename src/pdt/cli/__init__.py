"""The `pdt` command: noun, then verb.

Imports of torch happen inside commands, so `pdt --help` is instant.
"""

import sys

import typer

from pdt.cli.chronicle import app as chronicle_app
from pdt.cli.curated import app as curated_app
from pdt.cli.record import app as record_app
from pdt.errors import PdtError

app = typer.Typer(
    name="pdt",
    help="Parallel Decoder Transformer: three lanes, one planner, one notes bus.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(chronicle_app, name="chronicle")
app.add_typer(curated_app, name="curated")
app.add_typer(record_app, name="record")


def main() -> None:
    """Run the command; a refusal is one message on stderr and its exit code, never a traceback."""
    try:
        app()
    except PdtError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
