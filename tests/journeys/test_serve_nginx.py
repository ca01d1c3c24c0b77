"""Replicas behind nginx, with the example of the project."""

import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.servers import MESSAGES, REQUEST, SOURCE, lines_of, served, tiny_writer
from tests.support.web_server import Site

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
EXAMPLE = Path(__file__).parents[2] / "deploy" / "nginx.conf"
pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx: apt-get install nginx-light")


def test_replicas_behind_nginx_stream_and_one_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ExitStack() as first, ExitStack() as second:
        writer = tiny_writer()
        sites = [stack.enter_context(served(writer))[0] for stack in (first, second)]
        text = EXAMPLE.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
        for example, site in zip(("8001", "8002"), sites, strict=True):
            text = text.replace(f"127.0.0.1:{example}", f"127.0.0.1:{site.port}")
        (tmp_path / "nginx.conf").write_text(text)
        assert NGINX is not None
        nginx = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            front = Site(port)
            end = time.monotonic() + 30
            while True:
                try:
                    assert front.ask("GET", "/ready").status == 200
                    break
                except ConnectionError:
                    assert time.monotonic() < end
                    time.sleep(0.1)
            asked = {"source": SOURCE, "request": REQUEST, "settings": {"max_tokens": 12}}
            streamed = list(
                lines_of(front, "POST", "/v1/pdt/generations", asked | {"stream": True})
            )
            assert streamed[-1]["sse"] == "end"
            made = front.ask("POST", "/v1/pdt/generations", asked).json
            again = list(lines_of(front, "GET", f"/v1/pdt/generations/{made['id']}/events"))
            assert again[-1]["sse"] == "end"
            holds = [s.ask("GET", f"/v1/pdt/generations/{made['id']}").status for s in sites]
            (first, second)[holds.index(200)].close()  # that replica goes away
            body = {"model": "tiny", "messages": MESSAGES, "max_tokens": 4}
            assert front.ask("POST", "/v1/chat/completions", body).status == 200
        finally:
            nginx.terminate()
            nginx.wait(timeout=30)
