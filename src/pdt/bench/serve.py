"""A server process against the library alone: tokens a second, first tokens, and memory over time.

The server is `pdt serve` in a process of its own, its clients plain connections on loopback. The
library writes the same documents in this process while the server is idle, in turn with it.

Paper: §3.6.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pdt.bench.timing import Timing, interleave, ratio
from pdt.errors import PdtError
from pdt.generation.events import Round
from pdt.generation.pack import Pack
from pdt.generation.settings import GenerationSettings
from pdt.generation.writer import Writer

REQUEST = "Write a history of the siege in three sections."
SENTENCE = "In the year {year} the town of Orlen was held by {count} soldiers. "
Served = tuple[list[float], int]
"""Seconds to each client's first token, and all tokens that came."""


@dataclass(frozen=True)
class ServedLoad:
    """So many clients at once, all repeats."""

    clients: int
    tokens: int
    """Of one repeat."""
    served: Timing
    alone: Timing
    first_served: Timing
    first_alone: Timing

    @property
    def throughput(self) -> tuple[float, float, float]:
        """The server's tokens a second over the library's: median and quartiles."""
        return ratio(self.alone, self.served)

    @property
    def added_first(self) -> float:
        """Seconds that the server adds to a first token."""
        return self.first_served.median - self.first_alone.median


@dataclass(frozen=True)
class MemoryOverTime:
    """Resident bytes of the server while clients come and go."""

    clients: int
    documents: int
    samples: tuple[tuple[float, int], ...]
    """Seconds since the start, bytes."""


@contextmanager
def server(model: str, *, documents: int) -> Iterator[tuple[int, int]]:
    """`pdt serve` on a free port: the port and the process id."""
    limits = [f"documents={documents}", f"waiting={documents}", f"share={2 * documents}"]
    command = [sys.executable, "-m", "pdt", "serve", "--model", model, "--port", "0"]
    command += [part for limit in limits for part in ("--set", limit)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        if found is None:
            raise PdtError(f"The server did not start: {first}{process.stderr.read()}")
        port = int(found[1])
        end = time.monotonic() + 300
        while not asyncio.run(_is_ready(port)):
            if process.poll() is not None or time.monotonic() > end:
                raise PdtError("The server did not become ready.")
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(timeout=90)


def bench_serve(model: str, clients: list[int], *, tokens: int, repeats: int) -> list[ServedLoad]:
    """Each number of clients in turn, server and library interleaved."""
    writer = Writer.load(model)
    settings = GenerationSettings(max_tokens=tokens, stop_at_eos=False)
    with server(model, documents=max(clients)) as (port, _):
        return [_one_load(port, writer, count, settings, repeats) for count in clients]


def _one_load(
    port: int, writer: Writer, count: int, settings: GenerationSettings, repeats: int
) -> ServedLoad:
    bodies = [_body(index, settings) for index in range(count)]
    first_served: list[float] = []
    first_alone: list[float] = []
    written: list[int] = []

    def served() -> None:
        firsts, tokens = asyncio.run(_ask_all(port, bodies))
        first_served.append(min(firsts))
        written.append(tokens)

    def alone() -> None:
        first_alone.append(_write_alone(writer, count, settings))

    timings = interleave({"served": served, "alone": alone}, repeats=repeats, warmup=1)
    return ServedLoad(
        count,
        written[-1],
        timings["served"],
        timings["alone"],
        Timing(tuple(first_served[1:])),
        Timing(tuple(first_alone[1:])),
    )


def bench_memory(model: str, clients: int, *, tokens: int, minutes: float) -> MemoryOverTime:
    """Clients that ask again as soon as they are answered, for so long."""
    settings = GenerationSettings(max_tokens=tokens, stop_at_eos=False)
    with server(model, documents=clients) as (port, pid):
        return asyncio.run(_keep_asking(port, pid, clients, settings, minutes * 60))


async def _keep_asking(
    port: int, pid: int, clients: int, settings: GenerationSettings, seconds: float
) -> MemoryOverTime:
    began, documents = time.monotonic(), 0
    samples: list[tuple[float, int]] = []

    async def ask(index: int) -> None:
        nonlocal documents
        while time.monotonic() - began < seconds:
            await _ask(port, _body(index, settings))
            documents += 1

    async def watch() -> None:
        while True:
            samples.append((time.monotonic() - began, _resident(pid)))
            await asyncio.sleep(max(1.0, seconds / 100))

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(ask(index) for index in range(clients)))
    watching.cancel()
    samples.append((time.monotonic() - began, _resident(pid)))
    return MemoryOverTime(clients, documents, tuple(samples))


def _write_alone(writer: Writer, count: int, settings: GenerationSettings) -> float:
    """The same documents with the library: one packed round for all. Seconds to a first token."""
    began, first = time.perf_counter(), None
    pack = Pack(writer.model)
    for index in range(count):
        generation = writer.begin([(_source(index), REQUEST)], settings)
        pack.join(str(index), generation)
    names = [str(index) for index in range(count)]
    while len(pack):
        for name in names:
            while name in pack and (event := pack.next_event(name)) is not None:
                if first is None and isinstance(event, Round):
                    first = time.perf_counter() - began
        pack.round([name for name in names if name in pack])
    assert first is not None
    return first


async def _ask_all(port: int, bodies: list[bytes]) -> Served:
    said = await asyncio.gather(*(_ask(port, body) for body in bodies))
    return [first for first, _ in said], sum(tokens for _, tokens in said)


async def _ask(port: int, body: bytes) -> tuple[float, int]:
    """Seconds to the first token, and tokens in all."""
    began, first, tokens = time.perf_counter(), None, 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = "POST /v1/pdt/generations HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status = await reader.readline()
        if b" 200 " not in status:
            raise PdtError(f"The server answered {status.decode().strip()}.")
        async for line in reader:
            if line.startswith(b"event: round"):
                first = first or time.perf_counter() - began
            elif line.startswith(b"data: ") and b'"event":"round"' in line:
                tokens += line.count(b'"token":')
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if first is None:
        raise PdtError("The server's stream ended without a token.")
    return first, tokens


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.write(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    status = await reader.readline()
    writer.close()
    return b" 200 " in status


def _body(index: int, settings: GenerationSettings) -> bytes:
    asked = {
        "source": _source(index),
        "request": REQUEST,
        "settings": settings.model_dump(mode="json"),
        "stream": True,
    }
    return json.dumps(asked).encode()


def _source(index: int) -> str:
    """A text of some 200 tokens, another for each client."""
    lines = (SENTENCE.format(year=1400 + index + n, count=100 + 7 * n) for n in range(9))
    return "".join(lines).strip()


def _resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0
