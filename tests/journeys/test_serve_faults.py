"""What clients and networks do to a server: nothing hangs, nothing leaks, nobody's text changes.

PDT_FAULTS=1000 runs the same with a thousand clients and five thousand bodies.
"""

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest

from pdt.generation.settings import GenerationSettings
from pdt.generation.writer import Writer
from pdt.serve.engine import Engine
from tests.support.servers import (
    MESSAGES,
    REQUEST,
    SOURCE,
    lines_of,
    served,
    tiny_writer,
    wait_until,
)
from tests.support.web_server import Site

CLIENTS = int(os.environ.get("PDT_FAULTS", "30"))
PATH = "/v1/pdt/generations"
ASKED: dict[str, Any] = {
    "source": SOURCE, "request": REQUEST, "settings": {"max_tokens": 100}, "stream": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def writer() -> Writer:
    return tiny_writer()


@pytest.fixture(scope="module")
def site(writer: Writer) -> Iterator[tuple[Site, Engine]]:
    with served(writer) as running:
        yield running


@pytest.fixture(scope="module")
def expected(writer: Writer) -> str:
    settings = GenerationSettings(max_tokens=100)
    return writer.generate(SOURCE, REQUEST, settings).documents[0].text


def text_of(site: Site) -> str:
    (done,) = [event for event in lines_of(site, "POST", PATH, ASKED) if event["sse"] == "done"]
    text: str = done["documents"][0]["text"]
    return text


def raw(site: Site, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", site.port), timeout=30)
    connection.sendall(sent)
    return connection


def request_bytes(body: bytes, path: str = PATH) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def threads_and_files() -> tuple[int, int]:
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def test_clients_that_vanish_mid_stream_leave_nothing_behind(
    site: tuple[Site, Engine], expected: str
) -> None:
    here, engine = site
    before = threads_and_files()
    body = json.dumps(ASKED).encode()
    for batch in range(0, CLIENTS, 10):
        gone = [raw(here, request_bytes(body)) for _ in range(min(10, CLIENTS - batch))]
        for index, one in enumerate(gone):
            if index % 2:
                one.recv(200)  # some have read a little, some nothing
            if index % 3 == 0:  # some break off rudely
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
        if batch % 50 == 0:
            assert text_of(here) == expected
    wait_until(engine, 0)
    assert text_of(here) == expected
    wait_until(engine, 0)
    assert len(engine.kept.of("")) <= engine.limits.kept + engine.limits.documents
    end = time.monotonic() + 20
    while (now := threads_and_files()) > (before[0] + 12, before[1] + 12):
        assert time.monotonic() < end, (before, now)
        time.sleep(0.1)


def test_slow_readers_and_half_open_sockets_hold_nobody_up(
    site: tuple[Site, Engine], expected: str
) -> None:
    here, engine = site
    body = json.dumps(ASKED).encode()
    held = [raw(here, b"POST /v1/pdt/generations HTTP/1.1\r\nHost: loc") for _ in range(10)]
    held += [raw(here, request_bytes(body)[:-20]) for _ in range(5)]
    held += [raw(here, request_bytes(body)) for _ in range(8)]  # never read
    assert text_of(here) == expected
    assert here.ask("GET", "/health").status == 200
    for one in held:
        one.close()
    wait_until(engine, 0)


def mutations(seed: int) -> Iterator[bytes]:
    """Bodies that are nearly right: other types, other values, broken JSON, deep nests."""
    dice = random.Random(seed)
    odd: list[Any] = [
        None, True, -1, 0, 1e308, 10**30, "", "\x00", "\ud800", "🜁" * 50, [], {}, [[]],
        {"a": None}, "swap-plans:0,1@9999999999999", [1], ["x"], "NaN", 0.5,
    ]  # fmt: skip
    shapes: list[dict[str, Any]] = [
        ASKED | {"stream": False, "settings": {"max_tokens": 1}},
        {"model": "tiny", "messages": MESSAGES, "max_tokens": 1},
        {"model": "tiny", "prompt": f"{SOURCE}\n\n{REQUEST}", "max_tokens": 1},
        {"model": "tiny", "input": REQUEST, "instructions": SOURCE, "max_output_tokens": 1},
    ]
    while True:
        body = json.loads(json.dumps(dice.choice(shapes)))
        for _ in range(dice.randint(1, 3)):
            name = dice.choice(
                [*body, "pdt", "stop", "seed", "temperature", "lanes", "stream_options"]
            )
            body[name] = dice.choice(odd)
            if name == "pdt" and dice.random() < 0.7:
                inner = dice.choice(["source", "interventions", "settings", "other"])
                body[name] = {inner: dice.choice(odd)}
        text = json.dumps(body).encode()
        match dice.randint(0, 9):
            case 0:
                text = text[: dice.randint(0, len(text))]
            case 1:
                at = dice.randint(0, len(text))
                text = text[:at] + bytes([dice.randint(0, 255)]) + text[at:]
            case 2:
                text = b"[" * dice.choice([50, 5000]) + text
        yield text


def test_malformed_bodies_are_refused_and_none_is_a_500(site: tuple[Site, Engine]) -> None:
    here, engine = site
    paths = [PATH, "/v1/chat/completions", "/v1/completions", "/v1/responses"]
    count = max(160, 5 * CLIENTS if CLIENTS >= 1000 else 0)
    seen: dict[int, int] = {}
    for index, body in zip(range(count), mutations(7), strict=False):
        connection = HTTPConnection("127.0.0.1", here.port, timeout=60)
        headers = {"content-type": "application/json"}
        connection.request("POST", paths[index % 4], body, headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        seen[answer.status] = seen.get(answer.status, 0) + 1
        assert answer.status < 500, (paths[index % 4], body, said)
        if answer.status >= 400:
            assert set(json.loads(said)["error"]) == {"message", "type", "param", "code"}
        for one in engine.kept.of(""):
            if not one.ended:
                engine.cancel(one)
    assert seen.get(400, 0) > count / 3, seen
    wait_until(engine, 0)


def start(port: int) -> tuple["subprocess.Popen[str]", int]:
    command = [sys.executable, "-m", "pdt", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r":(\d+)", process.stderr.readline().partition("127.0.0.1")[2])
    assert found is not None
    end = time.monotonic() + 300
    while Site(int(found[1])).ask("GET", "/ready").status != 200:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.2)
    return process, int(found[1])


@pytest.mark.slow
def test_a_terminated_server_ends_what_it_began_and_a_killed_one_starts_again() -> None:
    process, port = start(0)
    try:
        body = ASKED | {"settings": {"max_tokens": 24}}
        stream = lines_of(Site(port), "POST", PATH, body)
        next(stream)
        process.send_signal(signal.SIGTERM)
        assert [event["sse"] for event in stream][-1] == "end"
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
        process, _ = start(port)
        stream = lines_of(Site(port), "POST", PATH, body)
        next(stream)
        process.kill()
        with contextlib.suppress(OSError, HTTPException):
            assert "end" not in [event["sse"] for event in stream], "it was killed too late"
        process.wait()
        process, _ = start(port)
        assert [e["sse"] for e in lines_of(Site(port), "POST", PATH, body)][-1] == "end"
    finally:
        process.kill()
        process.wait()
