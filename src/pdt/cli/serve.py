"""`pdt serve`: an OpenAI-compatible server with a studio in the browser."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pdt.cli.generate import ModelDirectory, Trunk

KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", help="API keys, one a line; without it PDT_API_KEY is the key."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set one limit, as in documents=8.", show_default=False),
]
Origins = Annotated[
    list[str] | None,
    typer.Option("--origin", help="Another web origin that may ask, as in https://a.example."),
]


def serve(
    model: ModelDirectory = "nano",  # type: ignore[assignment]  # read like an argument
    host: Annotated[str, typer.Option(help="Any other than loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    trunk: Trunk = None,
    key_file: KeyFile = None,
    overrides: Settings = None,
    origin: Origins = None,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that documents have to end after SIGTERM.")
    ] = 60.0,
) -> None:
    """Serve one model: OpenAI's interfaces at /v1, the lanes' own at /v1/pdt, the studio at /."""
    from pdt.serve.command import run

    code = run(
        model,
        trunk=trunk,
        host=host,
        port=port,
        key_file=key_file,
        overrides=overrides or (),
        origins=origin or (),
        grace=grace,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    raise typer.Exit(code)
