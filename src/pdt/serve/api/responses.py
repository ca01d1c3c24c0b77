"""`/v1/responses`: one message a lane, written at once; `output_index` is its place in the order.

Each section but the last ends with an empty line, so that the texts of all messages joined, which
is what a client's `output_text` does, are the document. Plan, notes and barriers travel as events
`response.pdt.*`, which clients that do not know them pass over.

Paper: §2.1, §3.6.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from pdt.generation.events import (
    Barrier,
    Done,
    FinishReason,
    LaneFinished,
    PlanReady,
    Round,
    as_json,
)
from pdt.serve import sse
from pdt.serve.api.admission import admit, check_model, streamed, until_end
from pdt.serve.api.answers import as_refusal_of, finish_reason, pdt_object, result_of, usage
from pdt.serve.api.asking import Message, OpenAIFields, source_and_request, split_request
from pdt.serve.sections import BREAK, OneSection
from pdt.serve.writing import Failed, Status, Writing, event_json
from pdt.web.refusals import Refusal

router = APIRouter()


class InputItem(BaseModel):
    """A message of the input; an item of another type is refused."""

    model_config = ConfigDict(extra="allow")

    type: str = "message"


class ResponseAsked(OpenAIFields):
    """The fields of a response that are honoured here."""

    input: str | list[InputItem]
    instructions: str | None = None
    """Read as the source where `pdt.source` is not given."""
    max_output_tokens: int | None = Field(None, ge=1)
    """New tokens a lane may write."""
    seed: int | None = None
    stop: str | list[str] | None = None
    """These two are not of OpenAI's responses; whoever sends them means them."""
    metadata: dict[str, str] | None = None
    text: dict[str, Any] | None = None
    background: bool | None = None
    store: bool | None = None


@router.post("/v1/responses", response_model=None)
async def responses(request: Request, body: ResponseAsked) -> Response:
    """A document, one message a section."""
    model = check_model(request, body.model)
    body.check()
    kind = ((body.text or {}).get("format") or {}).get("type", "text") if body.text else "text"
    if kind != "text":
        raise Refusal(400, "Only text is written here.", param="text.format")
    if body.background:
        raise Refusal(
            400, "Use /v1/pdt/generations for a document to come back to.", param="background"
        )
    source, asked = _source_and_request(body)
    tokens = body.max_output_tokens
    wanted = body.asked(source, asked, max_tokens=tokens, seed=body.seed, stop=body.stop)
    writing = await admit(request, wanted, fixed_order=True, fill=tokens is None)
    answer = _Answer(writing, model, body)
    if body.stream:
        return streamed(request, writing, _events(answer))
    await until_end(request, writing)
    result_of(writing)
    return JSONResponse(answer.finished())


def _source_and_request(body: ResponseAsked) -> tuple[str, str]:
    source = body.pdt.source or body.instructions
    if isinstance(body.input, str):
        return split_request(source, body.input.strip(), "input")
    if not all(item.type == "message" for item in body.input):
        raise Refusal(400, "Only messages can be read.", param="input")
    try:
        messages = [Message.model_validate(item.model_dump()) for item in body.input]
    except ValueError:
        raise Refusal(
            400, "A message needs a role and text as its content.", param="input"
        ) from None
    return source_and_request(messages, source, "input")


class _Answer:
    """The response object as it stands."""

    def __init__(self, writing: Writing, model: str, body: ResponseAsked) -> None:
        self.writing = writing
        self.id = f"resp_{writing.id}"
        self._model, self._body = model, body

    def begun(self) -> dict[str, Any]:
        return self._object("in_progress", [], None)

    def finished(self) -> dict[str, Any]:
        done = self.writing.done
        assert done is not None
        sections = done.documents[0].sections
        cut = finish_reason({section.reason for section in sections}) == "length"
        output = [
            self.item(rank, _whole(section.text, rank, len(sections)), section.reason)
            for rank, section in enumerate(sections)
        ]
        return self._object("incomplete" if cut else "completed", output, done)

    def item(self, rank: int, text: str | None, reason: FinishReason | None) -> dict[str, Any]:
        """A lane's message, whole or just begun."""
        cut = reason is not None and finish_reason({reason}) == "length"
        status = "in_progress" if reason is None else "incomplete" if cut else "completed"
        return {
            "type": "message",
            "id": self.item_id(rank),
            "role": "assistant",
            "status": status,
            "content": [] if text is None else [part(text)],
        }

    def item_id(self, rank: int) -> str:
        return f"msg_{self.writing.id}_{rank}"

    def _object(
        self, status: str, output: list[dict[str, Any]], done: Done | None
    ) -> dict[str, Any]:
        settings = self.writing.asked.settings
        counted = usage(self.writing)
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(self.writing.created),
            "status": status,
            "error": None,
            "incomplete_details": (
                {"reason": "max_output_tokens"} if status == "incomplete" else None
            ),
            "instructions": self._body.instructions,
            "max_output_tokens": settings.max_tokens,
            "metadata": self._body.metadata or {},
            "model": self._model,
            "output": output,
            "parallel_tool_calls": False,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "tool_choice": "none",
            "tools": [],
            "store": False,
            "text": {"format": {"type": "text"}},
            "usage": None
            if done is None
            else {
                "input_tokens": counted["prompt_tokens"],
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": counted["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": counted["total_tokens"],
            },
            "pdt": pdt_object(self.writing),
        }


def part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _whole(text: str, rank: int, ranks: int) -> str:
    return text.strip() + (BREAK if rank + 1 < ranks else "")


async def _events(answer: _Answer) -> AsyncIterator[bytes]:
    """The stream, numbered; it ends with the whole response or with an error."""
    number = 0
    lanes = _Lanes(answer)

    def sent(kind: str, **fields: Any) -> bytes:
        nonlocal number
        body = {"type": kind, "sequence_number": number, **fields}
        number += 1
        return sse.event(body, kind)

    yield sent("response.created", response=answer.begun())
    yield sent("response.in_progress", response=answer.begun())
    writing = answer.writing
    async for entry in writing.log.follow(pulse=sse.PULSE):
        if entry is None:
            yield sse.ALIVE
            continue
        event = entry[1]
        match event:
            case PlanReady():
                lanes.open(event.lane_at_position)
                yield sent("response.pdt.plan", **_pdt(as_json(event)))
                for kind, fields in lanes.opened():
                    yield sent(kind, **fields)
            case Round():
                for taken in event.lanes:
                    for kind, fields in lanes.piece(taken.lane, taken.text):
                        yield sent(kind, **fields)
            case Barrier():
                yield sent("response.pdt.barrier", **_pdt(as_json(event)))
            case LaneFinished():
                for kind, fields in lanes.finished(event):
                    yield sent(kind, **fields)
            case Failed():
                yield _error(sent, as_refusal_of(event))
                return
            case Done():
                pass
            case _:
                yield sent("response.pdt.status", **_pdt(event_json(event)))
    if writing.status is not Status.DONE:
        yield _error(sent, as_refusal_of(None))
        return
    response = answer.finished()
    yield sent(f"response.{response['status']}", response=response)


def _pdt(body: dict[str, Any]) -> dict[str, Any]:
    return {"pdt": {name: value for name, value in body.items() if name != "event"}}


def _error(sent: Any, refusal: Refusal) -> bytes:
    error = refusal.body()
    return sent("error", **error, message=refusal.message, code=refusal.code, param=None)


class _Lanes:
    """The messages of one answer as they grow."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._rank: dict[int, int] = {}
        self._sections: dict[int, OneSection] = {}
        self._text: dict[int, str] = {}

    def open(self, lane_at_position: Sequence[int]) -> None:
        self._rank = {lane: rank for rank, lane in enumerate(lane_at_position)}
        self._sections = {lane: OneSection() for lane in lane_at_position}
        self._text = dict.fromkeys(lane_at_position, "")

    def opened(self) -> list[tuple[str, dict[str, Any]]]:
        said: list[tuple[str, dict[str, Any]]] = []
        for rank in range(len(self._rank)):
            item = self._answer.item(rank, None, None)
            said.append(("response.output_item.added", {"output_index": rank, "item": item}))
            said.append(("response.content_part.added", {**self._at(rank), "part": part("")}))
        return said

    def piece(self, lane: int, text: str) -> list[tuple[str, dict[str, Any]]]:
        given = self._sections[lane].push(text)
        return self._delta(lane, given)

    def finished(self, event: LaneFinished) -> list[tuple[str, dict[str, Any]]]:
        lane, rank = event.lane, self._rank[event.lane]
        rest = self._sections[lane].push(event.text)
        last = BREAK if rank + 1 < len(self._rank) else ""
        said = self._delta(lane, rest + last)
        text = self._text[lane]
        item = self._answer.item(rank, text, event.reason)
        return [
            *said,
            ("response.output_text.done", {**self._at(rank), "text": text, "logprobs": []}),
            ("response.content_part.done", {**self._at(rank), "part": part(text)}),
            ("response.output_item.done", {"output_index": rank, "item": item}),
        ]

    def _delta(self, lane: int, text: str) -> list[tuple[str, dict[str, Any]]]:
        if not text:
            return []
        self._text[lane] += text
        fields = {**self._at(self._rank[lane]), "delta": text, "logprobs": []}
        return [("response.output_text.delta", fields)]

    def _at(self, rank: int) -> dict[str, Any]:
        return {"item_id": self._answer.item_id(rank), "output_index": rank, "content_index": 0}
