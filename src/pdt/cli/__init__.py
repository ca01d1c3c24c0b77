"""The `pdt` command: noun, then verb.

Imports of torch happen inside commands, so `pdt --help` is instant.
"""

import errno
import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer

from pdt.cli import (
    audit,
    bench,
    census,
    chronicle,
    config,
    corpus,
    curated,
    demo,
    evaluation,
    generate,
    model,
    record,
    review,
    scale,
    screen,
    serve,
    source,
    study,
    teacher,
    trace,
    train,
    trunk,
)
from pdt.errors import CRASHED, Followed, PdtError, PdtWarning, UsageError
from pdt.extras import extras_with

app = typer.Typer(
    name="pdt",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("generate")(generate.generate)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("census")(census.census)
app.command("verify")(evaluation.verify)
app.add_typer(train.app, name="train")
record.app.command("review")(review.review)
record.app.command("seal")(review.seal)
app.add_typer(trace.app, name="trace")
app.add_typer(config.app, name="config")
app.add_typer(trunk.app, name="trunk")
app.add_typer(model.app, name="model")
app.add_typer(bench.app, name="bench")
app.add_typer(chronicle.app, name="chronicle")
app.add_typer(curated.app, name="curated")
app.add_typer(source.app, name="source")
app.add_typer(record.app, name="record")
app.add_typer(teacher.app, name="teacher")
app.add_typer(corpus.app, name="corpus")
app.add_typer(evaluation.app, name="eval")
app.add_typer(audit.app, name="audit")
app.add_typer(study.app, name="study")
app.add_typer(screen.app, name="screen")
app.add_typer(scale.app, name="scale")


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"pdt {version('pdt')}")
        raise typer.Exit


@app.callback()
def pdt(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Parallel Decoder Transformer: three lanes, one planner, one notes bus."""


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Our own warnings are for whoever calls the command; others are for developers."""
    if issubclass(category, PdtWarning):
        print(f"Note: {message}", file=sys.stderr)
    elif sys.warnoptions:
        print(warnings.formatwarning(message, category, filename, lineno), file=sys.stderr)


_FREE = "Free some space, then run it again."
_ANY_PLACE = "Free some space, or give a place that may be written to."
_REMEDIES = {
    errno.ENOSPC: _FREE,
    errno.EFBIG: _FREE,
    errno.EDQUOT: _FREE,
    errno.ENOENT: "Make the directory first, or give another place.",
    errno.ENOTDIR: "A file is in the way. Give another place, or move it.",
    errno.EEXIST: "A file is in the way. Give another place, or move it.",
    errno.EISDIR: "It is a directory. Give the name of a file.",
    errno.EACCES: "Give a place that may be written to.",
    errno.EPERM: "Give a place that may be written to.",
    errno.EROFS: "Give a place that may be written to.",
    errno.ENAMETOOLONG: "Give a shorter name.",
}
"""What to do about an error of the file system, by its number."""


def main() -> None:
    """Run the command; a refusal is one message on stderr and its exit code, never a traceback."""
    # torch's threads spin for milliseconds when they wait; beside another busy program that made a
    # generation four times slower. Read when torch is loaded, so it must be set before.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    warnings.showwarning = _say_warning
    try:
        app()
    except PdtError as error:
        if not isinstance(error, Followed):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of a pipe has gone, as in `pdt census | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a full disk, a directory that may not be written
        named = f": {error.filename}" if error.filename else ""
        print(f"{type(error).__name__}: {error.strerror or error}{named}", file=sys.stderr)
        print(_REMEDIES.get(error.errno or 0, _ANY_PLACE), file=sys.stderr)
        sys.exit(PdtError.exit_code)
    except Exception as error:
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if extras := extras_with(missing):
            places = " or ".join(f"pip install 'pdt[{extra}]'" for extra in extras)
            print(f"{missing} is not installed.\nInstall it: {places}.", file=sys.stderr)
            sys.exit(UsageError.exit_code)
        traceback.print_exc()
        print(
            "\npdt has crashed, which it never should. Please report the lines above.",
            file=sys.stderr,
        )
        sys.exit(CRASHED)
