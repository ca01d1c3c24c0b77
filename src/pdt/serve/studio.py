"""The studio: pages for a person, over the lanes' own interface."""

import asyncio
import random
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse

from pdt.serve.api.admission import engine_of, writer_of
from pdt.serve.examples import DRAWS, draw
from pdt.serve.writing import Writing
from pdt.web.pages import Pages

router = APIRouter(include_in_schema=False)
pages = Pages("pdt.serve")


@router.get("/")
async def start(request: Request) -> HTMLResponse:
    """An empty sheet, and what was written before."""
    own = engine_of(request).kept.of(request.state.holder)
    return pages.page("start.html", runs=own[:8], **_about(request))


@router.get("/runs")
async def runs(request: Request) -> HTMLResponse:
    """Everything that is kept."""
    own = engine_of(request).kept.of(request.state.holder)
    return pages.page("runs.html", runs=own, **_about(request))


@router.get("/runs/{name}")
async def run(request: Request, name: str) -> HTMLResponse:
    """One document as it is written, or as it was."""
    return pages.page("run.html", run=_found(request, name), **_about(request))


@router.get("/beside/{name}/{other}")
async def beside(request: Request, name: str, other: str) -> HTMLResponse:
    """Two documents side by side."""
    return pages.page(
        "beside.html", run=_found(request, name), other=_found(request, other), **_about(request)
    )


@router.get("/studio/example")
async def example(
    request: Request, number: Annotated[int | None, Query(ge=0, lt=DRAWS)] = None
) -> dict[str, Any]:
    """A source and a request of the kind that the model was trained on."""
    writer = writer_of(engine_of(request))
    chosen = random.SystemRandom().randrange(DRAWS) if number is None else number
    return {"number": chosen, **await asyncio.to_thread(draw, writer, chosen)}


def _found(request: Request, name: str) -> Writing:
    return engine_of(request).kept.find(name, request.state.holder)


def _about(request: Request) -> dict[str, Any]:
    engine = engine_of(request)
    model = None if engine.writer is None else engine.writer.model.config
    return {
        "model_name": request.app.state.model_name,
        "lanes": 3 if model is None else model.lanes.count,
        "codes": 256 if model is None else model.notes.codes,
        "bits": 32
        if model is None
        else model.notes.codebooks * (model.notes.codes - 1).bit_length(),
        "kind": None if model is None else model.teacher.kind,
        "learned": None if model is None else model.records.limits.source_tokens,
        "block_tokens": 32 if model is None else model.lanes.block_tokens,
        "ready": engine.ready,
    }
