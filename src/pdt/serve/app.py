"""The server's application: its interfaces, its pages, and the engine that runs while it does."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp

from pdt.generation.writer import Writer
from pdt.serve import studio
from pdt.serve.api import about, chat, native, responses
from pdt.serve.engine import Engine
from pdt.serve.limits import Limits
from pdt.serve.metrics import CountsRefusals
from pdt.web.app import guarded, new_app
from pdt.web.keys import Keys

GRACE = 60.0
"""Seconds that documents under way have to end when the server is told to stop."""


def build(
    load: Callable[[], Writer],
    *,
    model_name: str,
    host: str = "127.0.0.1",
    keys: Keys | None = None,
    limits: Limits | None = None,
    origins: Sequence[str] = (),
    grace: float = GRACE,
    replicated: bool = False,
) -> tuple[ASGIApp, Engine]:
    """The application behind its guards, and its engine.

    `replicated`: nothing brings a client back to this very process, so what needs that is left out:
    the studio, and documents to come back to. And it only begins once the model is loaded.
    """
    limits = limits or Limits()
    engine = Engine(load, limits)

    @asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        engine.start(asyncio.get_running_loop())
        while replicated and engine.writer is None:
            if engine.error is not None:
                raise engine.error
            await asyncio.sleep(0.05)
        yield
        await asyncio.to_thread(engine.close, grace)

    app = new_app("pdt", package="pdt.serve", description=__doc__ or "")
    app.router.lifespan_context = alive
    app.state.engine, app.state.model_name = engine, model_name
    app.state.started = int(time.time())
    app.state.replicated = replicated
    whole = (about.router, chat.router, responses.router)
    own = (native.creating,) if replicated else (native.creating, native.router, studio.router)
    for router in (*whole, *own):
        app.include_router(router)
    behind = guarded(
        app, host=host, keys=keys or Keys([]), body_bytes=limits.body_bytes, origins=origins
    )
    return CountsRefusals(behind, engine.metrics), engine
