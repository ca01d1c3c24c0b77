"""Replicas of the server on a Ray cluster: each holds the model, and they share nothing.

Ray Serve takes the connections, gives each request to the replica with least to do, and begins a
replica that was lost again. It has no way to bring a client back to the replica that holds its
document, so these replicas have OpenAI's interfaces and streams alone.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from pdt.errors import CRASHED, PdtError, UsageError
from pdt.generation.writer import Writer
from pdt.records.pipeline.cluster import ray_cluster
from pdt.serve.app import build
from pdt.serve.command import limits_from, where_of
from pdt.serve.limits import Limits
from pdt.web.keys import Keys, read_keys, require_key_for

NAME = "pdt"
"""Of the application and its one deployment."""


def run_on_ray(
    model: Path,
    *,
    replicas: int,
    trunk: str | None,
    host: str,
    port: int,
    key_file: Path | None,
    overrides: Sequence[str],
    origins: Sequence[str],
    grace: float,
    say: Callable[[str], None],
) -> int:
    """Serve on the cluster until SIGTERM or Ctrl-C; the exit code."""
    keys = read_keys(key_file)
    require_key_for(host, keys)
    limits = limits_from(overrides)
    if not port:
        raise UsageError("On Ray the proxy needs a port of its own: give --port other than 0.")
    serve = _ray_serve()

    def load() -> Writer:
        return Writer.load(model, trunk=trunk)

    deployment = deployed(
        load, model.name, replicas, host=host, keys=keys, limits=limits, origins=origins,
        grace=grace,
    )  # fmt: skip
    told = threading.Event()
    with ray_cluster():
        serve.start(http_options={"host": host, "port": port})
        try:
            serve.run(deployment.bind(), name=NAME, route_prefix="/")
        except RuntimeError as error:
            serve.delete(NAME)
            raise PdtError(
                f"Ray could not begin the replicas of {model}.\n{error}\n"
                "Each needs one CPU of the cluster, and must find the model at that path."
            ) from error
        for number in (signal.SIGTERM, signal.SIGINT):  # now: joining a cluster sets its own
            signal.signal(number, lambda *_: told.set())
        key = "" if keys else ", without a key"
        say(f"pdt serves {model.name} at {where_of(host, port)} with {replicas} replicas{key}")
        told.wait()
        serve.delete(NAME)  # replicas end what they have begun
    return 0


def deployed(
    load: Callable[[], Writer],
    model_name: str,
    replicas: int,
    *,
    host: str = "127.0.0.1",
    keys: Keys,
    limits: Limits,
    origins: Sequence[str] = (),
    grace: float,
) -> Any:
    """The deployment: so many processes with one model each."""
    serve = _ray_serve()

    def built() -> ASGIApp:
        """Called in the replica. One whose engine stops has no use, and Ray begins another."""
        app, engine = build(
            load, model_name=model_name, host=host, keys=keys, limits=limits, origins=origins,
            grace=grace, replicated=True,
        )  # fmt: skip
        engine.on_failure = lambda: os._exit(CRASHED) if engine.writer else None
        return app

    replica = type("Replica", (), {"__doc__": "One process with the model."})
    return serve.deployment(
        serve.ingress(built)(replica),
        name=NAME,
        num_replicas=replicas,
        max_ongoing_requests=limits.connections,  # the engine has a queue of its own
        graceful_shutdown_timeout_s=grace + 5,
        ray_actor_options={"num_cpus": 1},
    )


def _ray_serve() -> Any:
    try:
        from ray import serve
    except ImportError as error:
        raise UsageError(
            f"Ray Serve is not here ({error}).\nInstall it: pip install 'pdt[ray-serve]'."
        ) from error
    return serve
