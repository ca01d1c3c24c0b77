"""A real server on loopback, in a thread of the test, and plain requests to it."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from pdt.web.run import server_of


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Site(NamedTuple):
    """Where a running application is reached."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request; a body that is no text is sent as JSON."""
        sent = dict(headers or {})
        if body is not None and not isinstance(body, str | bytes):
            body = json.dumps(body)
            sent.setdefault("content-type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, named, answer.read().decode())
        finally:
            connection.close()


@contextmanager
def serving(app: ASGIApp, **limits: Any) -> Iterator[Site]:
    """The application on a free port of loopback, stopped at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = server_of(app, host="127.0.0.1", port=port, **limits)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive() and time.monotonic() < end, "the server did not start"
        time.sleep(0.01)
    try:
        yield Site(port)
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive(), "the server did not stop"
