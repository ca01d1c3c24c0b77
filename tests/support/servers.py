"""A whole server with a tiny model or nano behind it, and documents to ask it for."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from pdt.generation.writer import Writer
from pdt.serve.app import build
from pdt.serve.engine import Engine
from pdt.serve.limits import Limits
from pdt.web.keys import Keys
from tests.support.generations import byte_tokenizer, text_model
from tests.support.web_server import Site, serving

SOURCE = "The siege of the town.\n\nIt lasted the winter."
REQUEST = "Write of the siege."
MESSAGES: Any = [{"role": "system", "content": SOURCE}, {"role": "user", "content": REQUEST}]


def tiny_writer() -> Writer:
    """Random weights whose lanes differ and hear each other: fast, and as exact as any."""
    return Writer(text_model(), byte_tokenizer())


@contextmanager
def served(
    writer: Writer, *, limits: Limits | None = None, keys: Keys | None = None, grace: float = 5
) -> Iterator[tuple[Site, Engine]]:
    """The server with this model, ready to be asked."""
    app, engine = build(lambda: writer, model_name="tiny", limits=limits, keys=keys, grace=grace)
    with serving(app) as site:
        end = time.monotonic() + 60
        while not engine.ready:
            assert engine.error is None and time.monotonic() < end
            time.sleep(0.01)
        yield site, engine


def lines_of(site: Site, method: str, path: str, body: object = None) -> Iterator[dict[str, Any]]:
    """The events of a stream, each with its name as `sse`; closing it closes the connection."""
    connection = HTTPConnection("127.0.0.1", site.port, timeout=60)
    try:
        headers = {"content-type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        name = None
        for raw in answer:
            line = raw.decode().rstrip("\n")
            assert not line.startswith("id:")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: ") and line != "data: [DONE]":
                yield {"sse": name, **json.loads(line[6:])}
                name = None
    finally:
        connection.close()


def wait_until(engine: Engine, documents: int) -> None:
    """Until so many documents are under way."""
    end = time.monotonic() + 30
    while engine.places.under_way != documents:
        assert time.monotonic() < end, f"{engine.places.under_way} are under way"
        time.sleep(0.01)
