"""Server-sent events: one line each, comments that keep a connection alive, no silent end.

No `id:` fields: clients of this kind of interface do not expect them. A reader that wants to come
back counts what it has read.
"""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

PULSE = 15.0
"""Seconds of silence after which a comment is sent."""
ALIVE = b": still here\n\n"
LAST = b"data: [DONE]\n\n"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""A proxy must not hold the stream back."""


def event(body: dict[str, Any], name: str | None = None) -> bytes:
    """One event; JSON has no line breaks, so it is one line."""
    head = b"" if name is None else f"event: {name}\n".encode()
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return head + b"data: " + data.encode("utf-8", "replace") + b"\n\n"


class Stream(StreamingResponse):
    """Says when it is over, however it ends: whole, cut off, or before its first event."""

    def __init__(self, chunks: AsyncIterator[bytes], over: Callable[[], None]) -> None:
        super().__init__(chunks, media_type="text/event-stream", headers=HEADERS)
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()


def stream(chunks: AsyncIterator[bytes], over: Callable[[], None] = lambda: None) -> Stream:
    return Stream(chunks, over)
