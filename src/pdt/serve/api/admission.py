"""How every interface takes a document in: a place first, then its text, then its turn."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from fastapi import Request

from pdt.generation.writer import Writer
from pdt.serve import sse
from pdt.serve.engine import Engine
from pdt.serve.places import RETRY
from pdt.serve.prepare import begin, check_asked, room_for, source_as_read
from pdt.serve.writing import Asked, Writing
from pdt.web.refusals import Refusal


def engine_of(request: Request) -> Engine:
    return request.app.state.engine


def writer_of(engine: Engine) -> Writer:
    """The model, or a refusal while it is loading."""
    if engine.error is not None:
        raise Refusal(503, "The model is not there; the server's log says why.")
    if engine.writer is None:
        raise Refusal(503, "The model is being loaded.", headers=RETRY)
    return engine.writer


def check_model(request: Request, name: str | None) -> str:
    """The one model there is."""
    own: str = request.app.state.model_name
    if name is not None and name != own:
        raise Refusal(
            404,
            f"There is no model {name[:80]!r} here; this server has {own!r}.",
            param="model",
            code="model_not_found",
        )
    return own


async def admit(
    request: Request,
    asked: Asked,
    *,
    fixed_order: bool = False,
    fill: bool = False,
    parent: Writing | None = None,
    pause: bool = False,
) -> Writing:
    """Reserve a place, read the text in another thread, and let it wait for its turn.

    `fill`: the client named no number of tokens, and gets what the trunk has room for.
    """
    engine, holder = engine_of(request), request.state.holder
    writer = writer_of(engine)
    check_asked(asked, engine.limits, fixed_order=fixed_order)
    engine.places.reserve(holder)

    def read() -> Writing:
        settings = asked.settings
        source = asked.source if parent else source_as_read(writer, asked.source)
        if fill:
            room = room_for(writer, source, asked.request, settings)
            settings = settings.model_copy(update={"max_tokens": room})
        whole = replace(asked, source=source, settings=settings)
        writing = Writing(whole, holder, pause_at=pause)
        begin(writer, writing, parent, engine.digest)
        return writing

    try:
        writing = await asyncio.to_thread(read)
    except BaseException:
        engine.places.release(holder)
        raise
    engine.submit(writing)
    return writing


def let_go(engine: Engine, writing: Writing) -> None:
    """Its client is gone, or has all of it."""
    if not writing.ended:
        engine.cancel(writing)


def streamed(request: Request, writing: Writing, chunks: AsyncIterator[bytes]) -> sse.Stream:
    """A stream that its document ends with."""
    engine = engine_of(request)
    return sse.stream(chunks, lambda: let_go(engine, writing))


async def until_end(request: Request, writing: Writing) -> None:
    """Wait for the end; a client that goes away ends it within a round."""
    engine = engine_of(request)

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        let_go(engine, writing)

    watching = asyncio.create_task(gone())
    try:
        async for _ in writing.log.follow():
            pass
    finally:
        watching.cancel()
        let_go(engine, writing)
