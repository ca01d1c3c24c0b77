"""`/v1/pdt/generations`: create, follow, pause, intervene, branch, cancel, list and export.

Paper: §3.6, §7.1.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from pdt.config import Strict
from pdt.generation.interventions import fitted_to
from pdt.generation.settings import GenerationSettings, settings_from
from pdt.generation.trace import sealed, trace_of
from pdt.serve import sse
from pdt.serve.api.admission import admit, check_model, engine_of, streamed, writer_of
from pdt.serve.api.asking import Texts
from pdt.serve.exports import as_html, as_markdown
from pdt.serve.plan_passages import nearest_sentences
from pdt.serve.plan_words import nearest_words
from pdt.serve.prepare import check_asked
from pdt.serve.writing import Asked, Status, Writing, event_json, parse_all
from pdt.terms import NodeTarget
from pdt.web.refusals import Refusal

creating = APIRouter(prefix="/v1/pdt/generations")
router = APIRouter(prefix="/v1/pdt/generations")
"""What comes back to a document, and so to the process that has it."""


class GenerationAsked(Strict):
    """A document to be written."""

    source: str
    request: str
    model: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    """max_tokens, temperature, top_k, top_p, min_p, repetition_penalty, stop, seed, drafts."""
    interventions: Texts = Field(default_factory=list)
    pause: bool = False
    """Wait at the first barrier."""
    stream: bool = False
    """Answer with the events; the document ends when this connection does."""


class InterventionsAsked(Strict):
    interventions: Annotated[Texts, Field(min_length=1)]


class BranchAsked(Strict):
    """The same document up to a barrier, then another way."""

    block: int = Field(ge=0, le=1_000_000)
    """The first block to be written anew."""
    interventions: Texts = Field(default_factory=list)
    pause: bool = False


def _found(request: Request, name: str) -> Writing:
    return engine_of(request).kept.find(name, request.state.holder)


@creating.post("", response_model=None)
async def create(request: Request, body: GenerationAsked) -> Response:
    """Take a document in. Follow it at `/v1/pdt/generations/{id}/events`."""
    check_model(request, body.model)
    if request.app.state.replicated and (body.pause or not body.stream):
        raise Refusal(
            400,
            "This server is one of several that nobody is brought back to. Ask with "
            '"stream": true, and without "pause".',
            param="pause" if body.pause else "stream",
        )
    settings: GenerationSettings = settings_from((), **body.settings)
    asked = Asked(body.source, body.request, settings, tuple(body.interventions))
    fill = "max_tokens" not in body.settings
    writing = await admit(request, asked, fill=fill, pause=body.pause)
    if body.stream:
        return streamed(request, writing, _stream(writing))
    return JSONResponse(writing.as_json(), 201)


@router.get("")
async def list_all(
    request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """This key's documents, newest first."""
    own = engine_of(request).kept.of(request.state.holder)
    return {"object": "list", "data": [one.as_json() for one in own[:limit]]}


@router.get("/{name}")
async def show(request: Request, name: str) -> dict[str, Any]:
    """One document as it stands, with what was asked."""
    writing = _found(request, name)
    return {**writing.as_json(), "source": writing.asked.source}


@router.get("/{name}/events", response_model=None)
async def events(
    request: Request, name: str, after: Annotated[int, Query(ge=0, le=10_000_000)] = 0
) -> Response:
    """Its events from the first or from where a reader was cut off, as they come, to the end."""
    return sse.stream(_stream(_found(request, name), after))


@router.get("/{name}/plan")
async def plan(request: Request, name: str) -> dict[str, Any]:
    """Its plan nodes with what lies nearest to each: words, or sentences of the source."""
    writing = _found(request, name)
    generation = writing.generation
    if generation is None or generation.plans_in_force is None:
        raise Refusal(409, "It has no plan yet: wait until it writes.", code="not_begun")
    source, asked = writing.asked.source, writing.asked.request
    if generation.model.config.planner.targets is NodeTarget.TEXT:
        said = asyncio.to_thread(nearest_words, generation, f"{source} {asked}")
    else:
        tokenizer = writer_of(engine_of(request)).tokenizer
        said = asyncio.to_thread(nearest_sentences, generation, tokenizer, source, asked)
    return {"lanes": await said}


@router.post("/{name}/pause")
async def pause(request: Request, name: str) -> dict[str, Any]:
    """Wait at the next barrier."""
    writing = _still_writing(request, name)
    writing.pause_at = True
    return writing.as_json()


@router.post("/{name}/resume")
async def resume(
    request: Request, name: str, until_barrier: Annotated[bool, Query()] = False
) -> dict[str, Any]:
    """Go on, to the end or to the next barrier."""
    writing = _still_writing(request, name)
    writing.pause_at = until_barrier
    writing.resume = True
    engine_of(request).nudge()
    return writing.as_json()


@router.post("/{name}/interventions")
async def intervene(request: Request, name: str, body: InterventionsAsked) -> dict[str, Any]:
    """Put edits in at the barrier where it waits, or at the next one it comes to."""
    writing = _still_writing(request, name)
    engine = engine_of(request)
    texts = tuple(body.interventions)
    asked = Asked("", "", writing.asked.settings, texts)
    check_asked(asked, engine.limits, fixed_order=False)
    fitted_to(parse_all(texts), writer_of(engine).model)
    writing.edits.append(texts)
    engine.nudge()
    return writing.as_json()


@router.post("/{name}/branch", response_model=None)
async def branch(request: Request, name: str, body: BranchAsked) -> Response:
    """A new document that is this one up to a barrier."""
    parent = _found(request, name)
    if parent.generation is None or parent.generation.plans is None:
        raise Refusal(409, "It has no plan yet: wait until it writes.", code="not_begun")
    asked = Asked(
        parent.asked.source,
        parent.asked.request,
        parent.asked.settings,
        tuple(body.interventions),
        (parent.id, body.block),
    )
    writing = await admit(request, asked, parent=parent, pause=body.pause)
    return JSONResponse(writing.as_json(), 201)


@router.post("/{name}/replay", response_model=None)
async def replay(request: Request, name: str) -> Response:
    """A new document that should be this one again; `replay_of.differences` says whether it is."""
    parent = _ended(request, name)
    if parent.status is not Status.DONE:
        raise Refusal(409, "It was interrupted, which no replay does at the same round.")
    asked = replace(
        parent.asked, interventions=parent.interventions(), branch_of=None, replay_of=parent.id
    )
    writing = await admit(request, asked, parent=parent)
    return JSONResponse(writing.as_json(), 201)


@router.post("/{name}/cancel")
async def cancel(request: Request, name: str) -> dict[str, Any]:
    """End it within a round; what was written stays."""
    writing = _found(request, name)
    if not writing.ended:
        engine_of(request).cancel(writing)
    return writing.as_json()


@router.delete("/{name}")
async def delete(request: Request, name: str) -> dict[str, Any]:
    """End it and forget it."""
    writing = _found(request, name)
    engine = engine_of(request)
    if not writing.ended:
        engine.cancel(writing)
    engine.kept.forget(writing)
    return {"id": writing.id, "object": "pdt.generation", "deleted": True}


@router.get("/{name}/trace", response_model=None)
async def trace(request: Request, name: str) -> Response:
    """What `pdt trace replay` reads: the same again, token for token."""
    writing = _ended(request, name)
    assert writing.generation is not None
    body = sealed(trace_of(writing.generation, engine_of(request).digest))
    return JSONResponse(body, headers=_as_file(writing, "json"))


@router.get("/{name}/markdown", response_model=None)
async def markdown(request: Request, name: str) -> Response:
    """The document as Markdown."""
    writing = _ended(request, name)
    text = as_markdown(writing)
    return Response(text, media_type="text/markdown", headers=_as_file(writing, "md"))


@router.get("/{name}/html", response_model=None)
async def html(request: Request, name: str) -> Response:
    """The document as one page that needs nothing else."""
    writing = _ended(request, name)
    page = as_html(writing, request.app.state.model_name)
    return Response(page, media_type="text/html", headers=_as_file(writing, "html"))


def _still_writing(request: Request, name: str) -> Writing:
    writing = _found(request, name)
    if writing.ended:
        raise Refusal(409, f"It has ended ({writing.status}). Branch from it.", code="ended")
    return writing


def _ended(request: Request, name: str) -> Writing:
    writing = _found(request, name)
    if writing.done is None:
        raise Refusal(409, f"It has no whole text: it is {writing.status}.", code="not_ended")
    return writing


def _as_file(writing: Writing, ending: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{writing.id}.{ending}"'}


async def _stream(writing: Writing, after: int = 0) -> AsyncIterator[bytes]:
    """Every event with its number `n`: a reader that was cut off asks for `after=n+1`."""
    async for entry in writing.log.follow(after, pulse=sse.PULSE):
        if entry is None:
            yield sse.ALIVE
        else:
            number, event = entry
            body = {"n": number, **event_json(event)}
            yield sse.event(body, body["event"])
    yield sse.event({"status": writing.status, "ended": True}, "end")
