"""A client's connection: closed if a request does not come whole, refused in words if too many."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pdt.web.guards import OPEN_TO_ALL
from pdt.web.refusals import Refusal

PATIENCE = 60.0
"""Seconds from a connection's beginning, or from a request's first byte, to its last."""
RETRY = {"retry-after": "5", "connection": "close"}


class Connection(H11Protocol):
    """As uvicorn's, which waits for ever for the rest of a request, and refuses in plain text."""

    patience = PATIENCE

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._served, self.app = self.app, self._asked
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._forget()  # it came whole, and may be answered for as long as that takes
        elif self._late is None:
            self._late = self.loop.call_later(self.patience, self.transport.close)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    async def _asked(self, scope: Scope, receive: Receive, send: Send) -> None:
        many = len(self.connections)
        if self._most is not None and many > self._most and scope["path"] not in OPEN_TO_ALL:
            refusal = Refusal(
                503,
                f"{many} connections are open, more than the {self._most} this server keeps.",
                code="too_many_connections",
                headers=RETRY,
            )
            await refusal.response()(scope, receive, send)
        else:
            await self._served(scope, receive, send)
