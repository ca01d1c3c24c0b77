"""Serving an application until it is told to stop."""

from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from pdt.web.connections import Connection
from pdt.web.guards import HEADER_BYTES

KEEP_ALIVE = 30
"""Seconds an idle connection is kept."""


class WebServer(uvicorn.Server):
    """Says when it is told to stop, before it waits for the connections under way."""

    on_exit: Callable[[], None] = staticmethod(lambda: None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.on_exit()
        super().handle_exit(sig, frame)


def server_of(
    app: ASGIApp, *, host: str, port: int, connections: int = 512, grace: int | None = None
) -> WebServer:
    """A server with limits: on connections, on headers, and on idle time."""
    return WebServer(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=Connection,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=connections,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=grace,
            h11_max_incomplete_event_size=2 * HEADER_BYTES,
        )
    )
