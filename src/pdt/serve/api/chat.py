"""`/v1/chat/completions` and `/v1/completions`: one merged text, or one choice a lane if asked."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from pdt.generation.events import Done, FinishReason, LaneFinished, PlanReady, Round
from pdt.serve import sse
from pdt.serve.api.admission import admit, check_model, streamed, until_end
from pdt.serve.api.answers import as_refusal_of, finish_reason, pdt_object, result_of, usage
from pdt.serve.api.asking import (
    Message,
    OpenAIFields,
    StreamOptions,
    source_and_request,
    split_request,
)
from pdt.serve.sections import ReadingOrder
from pdt.serve.writing import Failed, Status, Writing
from pdt.web.refusals import Refusal

router = APIRouter()
Lanes = Literal["merged", "choices"]


class ChatAsked(OpenAIFields):
    """The fields of a chat completion that are honoured here."""

    messages: list[Message] = Field(min_length=1, max_length=256)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    """New tokens a lane may write, as `max_tokens`."""
    seed: int | None = None
    stop: str | list[str] | None = None
    stream_options: StreamOptions | None = None
    lanes: Lanes = "merged"
    response_format: dict[str, Any] | None = None


class CompletionAsked(OpenAIFields):
    """The fields of a completion that are honoured here."""

    prompt: str | list[str]
    max_tokens: int | None = Field(None, ge=1)
    seed: int | None = None
    stop: str | list[str] | None = None
    stream_options: StreamOptions | None = None
    lanes: Lanes = "merged"


@router.post("/v1/chat/completions", response_model=None)
async def chat(request: Request, body: ChatAsked) -> Response:
    """A document from a conversation: its sections joined in reading order."""
    model = check_model(request, body.model)
    body.check()
    if body.response_format and body.response_format.get("type") not in (None, "text"):
        raise Refusal(400, "Only text is written here.", param="response_format")
    source, asked = source_and_request(body.messages, body.pdt.source, "messages")
    tokens = body.max_completion_tokens or body.max_tokens
    wanted = body.asked(source, asked, max_tokens=tokens, seed=body.seed, stop=body.stop)
    writing = await admit(request, wanted, fixed_order=True, fill=tokens is None)
    return await _answer(request, body, writing, _Shape("chat.completion", "chatcmpl", model))


@router.post("/v1/completions", response_model=None)
async def completions(request: Request, body: CompletionAsked) -> Response:
    """A document from a prompt whose last paragraph is the request."""
    model = check_model(request, body.model)
    body.check()
    if isinstance(body.prompt, list) and len(body.prompt) != 1:
        raise Refusal(400, "One prompt a request. Send each by itself.", param="prompt")
    prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    source, asked = split_request(body.pdt.source, prompt.strip(), "prompt")
    wanted = body.asked(source, asked, max_tokens=body.max_tokens, seed=body.seed, stop=body.stop)
    writing = await admit(request, wanted, fixed_order=True, fill=body.max_tokens is None)
    return await _answer(request, body, writing, _Shape("text_completion", "cmpl", model))


class _Shape:
    """How one of the two interfaces writes its objects."""

    def __init__(self, kind: str, prefix: str, model: str) -> None:
        self.kind, self.prefix, self.model = kind, prefix, model
        self.chat = kind == "chat.completion"

    def whole(self, writing: Writing, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head(writing, self.kind), "choices": choices, "usage": usage(writing)}

    def choice(self, index: int, text: str, reason: str) -> dict[str, Any]:
        said: dict[str, Any] = (
            {"message": {"role": "assistant", "content": text, "refusal": None}}
            if self.chat
            else {"text": text}
        )
        return {"index": index, **said, "logprobs": None, "finish_reason": reason}

    def piece(
        self, writing: Writing, index: int, text: str | None, reason: str | None, *, first: bool
    ) -> dict[str, Any]:
        if self.chat:
            delta: dict[str, Any] = {"role": "assistant"} if first else {}
            if text is not None:
                delta["content"] = text
            said: dict[str, Any] = {"delta": delta}
        else:
            said = {"text": text or ""}
        choice = {"index": index, **said, "logprobs": None, "finish_reason": reason}
        return {**self._head(writing, self._piece_kind), "choices": [choice]}

    def last(self, writing: Writing) -> dict[str, Any]:
        return {**self._head(writing, self._piece_kind), "choices": [], "usage": usage(writing)}

    @property
    def _piece_kind(self) -> str:
        return "chat.completion.chunk" if self.chat else self.kind

    def _head(self, writing: Writing, kind: str) -> dict[str, Any]:
        return {
            "id": f"{self.prefix}-{writing.id}",
            "object": kind,
            "created": int(writing.created),
            "model": self.model,
            "pdt": pdt_object(writing),
        }


async def _answer(
    request: Request, body: ChatAsked | CompletionAsked, writing: Writing, shape: _Shape
) -> Response:
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        chunks = _pieces(writing, shape, body.lanes == "choices", with_usage)
        return streamed(request, writing, chunks)
    await until_end(request, writing)
    (document,) = result_of(writing).documents
    sections = document.sections
    if body.lanes == "choices":
        choices = [
            shape.choice(index, section.text.strip(), finish_reason({section.reason}))
            for index, section in enumerate(sections)
        ]
    else:
        reason = finish_reason({section.reason for section in sections})
        choices = [shape.choice(0, document.text, reason)]
    return JSONResponse(shape.whole(writing, choices))


async def _pieces(
    writing: Writing, shape: _Shape, apart: bool, with_usage: bool
) -> AsyncIterator[bytes]:
    """Text as it can be given out; `apart`: one choice a lane, numbered in reading order."""
    orders: list[ReadingOrder] = []
    choice_of: dict[int, int] = {}
    reasons: dict[int, set[FinishReason]] = {}
    yield _sent(shape.piece(writing, 0, "", None, first=True))
    async for entry in writing.log.follow(pulse=sse.PULSE):
        if entry is None:
            yield sse.ALIVE
            continue
        match entry[1]:
            case PlanReady(lane_at_position=order):
                orders = (
                    [ReadingOrder([lane]) for lane in order] if apart else [ReadingOrder(order)]
                )
                choice_of = {lane: index if apart else 0 for index, lane in enumerate(order)}
                for index in range(1, len(orders)):
                    yield _sent(shape.piece(writing, index, "", None, first=True))
            case Round(lanes=lanes):
                for taken in lanes:
                    index = choice_of[taken.lane]
                    text = orders[index].push(taken.lane, taken.text)
                    if text:
                        yield _sent(shape.piece(writing, index, text, None, first=False))
            case LaneFinished() as finished:
                index = choice_of[finished.lane]
                reasons.setdefault(index, set()).add(finished.reason)
                text = orders[index].push(finished.lane, finished.text)
                text += orders[index].finish(finished.lane)
                if text:
                    yield _sent(shape.piece(writing, index, text, None, first=False))
            case Done():
                if not writing.stop.is_set() or writing.late:
                    for index in range(len(orders)):
                        reason = finish_reason(reasons[index])
                        yield _sent(shape.piece(writing, index, None, reason, first=False))
            case Failed() as failed:
                yield _sent(as_refusal_of(failed).body())
                return
    if writing.status is not Status.DONE:
        yield _sent(as_refusal_of(None).body())
        return
    if with_usage:
        yield _sent(shape.last(writing))
    yield sse.LAST


def _sent(body: dict[str, Any]) -> bytes:
    return sse.event(body)
