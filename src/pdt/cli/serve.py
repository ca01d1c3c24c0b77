"""`pdt serve`: an OpenAI-compatible server with a studio in the browser."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pdt.cli.generate import ModelDirectory, Trunk
from pdt.cli.options import need

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


class Where(StrEnum):
    """Where a server runs."""

    HERE = "here"
    RAY = "ray"


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
    on: Annotated[
        Where, typer.Option(help="In this process, or as replicas on a Ray cluster.")
    ] = Where.HERE,
    replicas: Annotated[
        int, typer.Option(min=1, help="Processes with the model, on Ray.", show_default=False)
    ] = 1,
) -> None:
    """Serve one model: OpenAI's interfaces at /v1, the lanes' own at /v1/pdt, the studio at /."""
    from pdt.errors import UsageError

    if on is Where.HERE and replicas > 1:
        raise UsageError("--replicas is for --on ray. Here, start one `pdt serve` for each port.")
    need("serve", "fastapi", "prometheus_client", "uvicorn")
    shared: dict[str, Any] = {
        "trunk": trunk,
        "host": host,
        "port": port,
        "key_file": key_file,
        "overrides": overrides or (),
        "origins": origin or (),
        "grace": grace,
        "say": lambda text: print(text, file=sys.stderr, flush=True),
    }
    if on is Where.RAY:
        from pdt.serve.on_ray import run_on_ray

        raise typer.Exit(run_on_ray(model, replicas=replicas, **shared))
    from pdt.serve.command import run

    raise typer.Exit(run(model, **shared))
