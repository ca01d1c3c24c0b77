"""A wiki on this machine: a real HTTP server that answers from captures, and fails as told."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.wiki_material import Material


@dataclass(frozen=True)
class Fault:
    """One answer that goes wrong."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut: bool = False
    """Promise the whole body and close half way."""
    drip: float = 0.0
    """Seconds between ten pieces of the body."""


class WikiServer:
    """Pages by revision; `faults[role]` are given out first, one a request."""

    def __init__(self, materials: Sequence[Material]) -> None:
        self.by_revision = {m.page["revisions"][0]["revid"]: m for m in materials}
        self.by_talk = {m.page.get("talkid"): m for m in materials if "talkid" in m.page}
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.busy = self.most_busy = 0
        self.lock = threading.Lock()
        self.url = ""

    def roles(self) -> list[str]:
        return [role for role, _ in self.seen]

    def find(self, path: str) -> tuple[str, bytes]:
        """Role and body for a request, as MediaWiki would answer it."""
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/w/rest.php/v1/revision/"):
            material = self.by_revision.get(int(parts.path.split("/")[5]))
            return "html", material.answers["html"].body if material else b""
        if "pageids" in query:
            return "talk", self.by_talk[int(query["pageids"])].answers["talk"].body
        material = self.by_revision.get(int(query["revids"]))
        missing = {"query": {"badrevids": {query["revids"]: {"missing": True}}}}
        return "revision", (
            material.answers["revision"].body if material else json.dumps(missing).encode()
        )


@contextmanager
def serve(materials: Sequence[Material]) -> Iterator[WikiServer]:
    wiki = WikiServer(materials)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: Any) -> None:
            """Silent."""

        def do_GET(self) -> None:
            with wiki.lock:
                wiki.busy += 1
                wiki.most_busy = max(wiki.most_busy, wiki.busy)
                role, body = wiki.find(self.path)
                wiki.seen.append((role, {k.lower(): v for k, v in self.headers.items()}))
                fault = wiki.faults[role].pop(0) if wiki.faults[role] else Fault()
            try:
                self._answer(fault, body)
            except OSError:
                pass  # the client went away, as it may
            finally:
                with wiki.lock:
                    wiki.busy -= 1

        def _answer(self, fault: Fault, body: bytes) -> None:
            etag = f'"{hash(body)}"'
            if fault.status == 200 and self.headers.get("If-None-Match") == etag:
                fault = Fault(status=304, body=b"")
            body = body if fault.body is None else fault.body
            status = 404 if not body and fault.status == 200 else fault.status
            self.send_response(status)
            for name, value in {"ETag": etag, **fault.headers}.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if fault.cut:
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
                return
            step = max(1, len(body) // 10) if fault.drip else max(1, len(body))
            for start in range(0, len(body), step):
                self.wfile.write(body[start : start + step])
                time.sleep(fault.drip)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    wiki.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield wiki
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
