"""The flags that commands share, and how they become a configuration."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from pdt.config import PdtConfig, load_config
from pdt.errors import UsageError

Preset = Annotated[str, typer.Option("--preset", help="Start from this preset.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A YAML file over the preset.", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set one key, as in lanes.fork_layer=28.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path, typer.Option("--out", help="A new directory for the result.")]
Revision = Annotated[str | None, typer.Option("--revision", help="The hub commit, 40 hex digits.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of every random draw.")
]


def need(extra: str, *modules: str) -> None:
    """The libraries of an extra, or one clear refusal."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise UsageError(
                f"{module} is not installed.\nInstall it: pip install 'pdt[{extra}]'."
            ) from error


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal while something takes its time; the value changes its words."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status(what) as status:
        yield status.update


@contextmanager
def opening(model: object) -> Iterator[None]:
    """The spinner of a command that loads a model, and before it what a machine does once."""
    with busy("starting torch") as say:
        from pdt.model.kernels.prepare import prepare

        prepare(say=say)
        say(f"opening {model}")
        yield


def chosen(preset: str, file: Path | None, overrides: list[str] | None) -> PdtConfig:
    return load_config(preset, file=file, overrides=overrides or ())
