"""Replicas on a Ray cluster of this machine: one is killed under load, no text changes."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.errors import UsageError
from pdt.generation.settings import GenerationSettings
from pdt.generation.writer import Writer
from tests.support.servers import SOURCE, lines_of
from tests.support.web_server import Site

LONG = 300
SAYS = ["Write of the siege.", "Write of the walls.", "Write of the winter."]
TOKENS = 48


def has_ray_serve() -> bool:
    return all(importlib.util.find_spec(name) for name in ("ray", "grpc_reflection", "aiohttp"))


@contextmanager
def cluster_of(cpus: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A cluster of one node on this machine; its address."""
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": 80 << 20, "memory": 8 << 30}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        yield cluster.address
    finally:
        cluster.shutdown()
        shutil.rmtree("/tmp/ray_logs", ignore_errors=True)


@contextmanager
def serving_on(address: str, replicas: int) -> Iterator[tuple[Site, "subprocess.Popen[str]"]]:
    """`pdt serve --on ray`, once it says that it serves."""
    port = 18_000 + os.getpid() % 1000
    command = [sys.executable, "-m", "pdt", "serve", "--on", "ray", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--replicas", str(replicas), "--grace", "5"],
        env={**os.environ, "RAY_ADDRESS": address},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("pdt serves"):
                break
        assert process.poll() is None, said
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield Site(port), process
    finally:
        process.terminate()
        process.wait(timeout=LONG)


def replicas_alive() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(b"ray::ServeReplica:pdt:pdt"):
                    found.add(int(entry.name))
    return found


def asked_of(site: Site, request: str) -> str | None:
    """What came, whole; None where the connection was cut or an error was said."""
    body = {"model": "nano", "max_tokens": TOKENS, "stream": True}
    body |= {
        "messages": [{"role": "system", "content": SOURCE}, {"role": "user", "content": request}]
    }
    text, ended = "", False
    try:
        for piece in lines_of(site, "POST", "/v1/chat/completions", body):
            if "error" in piece:
                return None
            for choice in piece["choices"]:
                text += choice["delta"].get("content") or ""
                ended = ended or choice["finish_reason"] is not None
    except (OSError, HTTPException, AssertionError, json.JSONDecodeError):
        return None
    return text if ended else None


@pytest.mark.slow
@pytest.mark.skipif(not has_ray_serve(), reason="no Ray Serve: pip install 'pdt[ray-serve]'")
def test_a_replica_killed_under_load_changes_no_text_and_is_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = Writer.load("nano")
    settings = GenerationSettings(max_tokens=TOKENS)
    alone = {say: writer.generate(SOURCE, say, settings).documents[0].text for say in SAYS}
    with cluster_of(2, monkeypatch) as address, serving_on(address, 2) as (site, process):
        before = replicas_alive()
        assert len(before) == 2
        answers: list[tuple[float, str, str | None]] = []
        over = threading.Event()

        def client(say: str) -> None:
            while not over.is_set():
                answers.append((time.monotonic(), say, asked_of(site, say)))

        threads = [threading.Thread(target=client, args=(say,)) for say in SAYS * 2]
        for thread in threads:
            thread.start()
        end = time.monotonic() + LONG
        while len(answers) < 2 * len(threads):
            assert time.monotonic() < end
            time.sleep(0.05)
        killed = time.monotonic()
        os.kill(min(before), signal.SIGKILL)
        # Until two live again, the other one writes.
        while (
            len(now := replicas_alive()) < 2
            or now == before
            or site.ask("GET", "/ready").status != 200
        ):
            assert time.monotonic() < end, now
            time.sleep(0.2)
        came_back, seen = time.monotonic(), len(answers)
        while len(answers) < seen + 2 * len(threads):
            assert time.monotonic() < end
            time.sleep(0.05)
        over.set()
        for thread in threads:
            thread.join()
        whole = [(at, say, text) for at, say, text in answers if text is not None]
        assert all(text == alone[say] for _, say, text in whole), "a client read another text"
        assert [at for at, _, _ in whole if killed < at < came_back], "nobody was served meanwhile"
        cut = [at for at, _, text in answers if text is None]
        assert all(at < came_back + 5 for at in cut) and len(cut) < len(whole), (
            len(cut),
            len(whole),
        )

        # What would need the same replica again is refused by name, or is not there.
        path = "/v1/pdt/generations"
        asked = {"source": SOURCE, "request": SAYS[0], "settings": {"max_tokens": 4}}
        refused = site.ask("POST", path, asked)
        assert (refused.status, refused.json["error"]["param"]) == (400, "stream")
        streamed = list(lines_of(site, "POST", path, asked | {"stream": True}))
        assert streamed[-1]["sse"] == "end"
        assert site.ask("GET", path).status in (404, 405)
        assert site.ask("GET", "/").status == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=LONG) == 0
        assert not replicas_alive()


def test_replicas_are_for_ray_and_ray_for_a_port() -> None:
    for arguments, says in (
        (["--replicas", "2"], "--replicas is for --on ray"),
        (["--on", "ray", "--port", "0"], "needs a port of its own"),
    ):
        result = CliRunner().invoke(app, ["serve", *arguments])
        assert isinstance(result.exception, UsageError), result.output
        assert says in str(result.exception)
