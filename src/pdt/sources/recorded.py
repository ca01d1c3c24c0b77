"""The offline twin of the client: the same addresses, answered from what was once received.

A recording is a directory of bundles, each with its http.json, or of captures: `NAME.meta.json`
(request, status, headers) beside `NAME.body.*`.

Paper: §4.1.
"""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import TypeAdapter

from pdt.errors import CorruptFile, SourceRefused, UsageError
from pdt.parse import parse_json
from pdt.sources.bundle import METADATA, read_bundle
from pdt.sources.wikimedia import Exchange, HttpAnswer

_UNTOLD = "1970-01-01T00:00:00+00:00"


class Recording:
    """Answers by address; host, `maxlag` and the order of parameters do not matter."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError(f"{root} is not a directory.\nGive bundles or captures to read from.")
        self._files: dict[str, tuple[Path, Exchange]] = {}
        self.requests = 0
        for metadata in sorted(root.rglob(METADATA)):
            self._add_bundle(metadata.parent)
        for meta in sorted(root.rglob("*.meta.json")):
            self._add_capture(meta)
        if not self._files:
            raise UsageError(
                f"{root} holds no bundle with http.json and no *.meta.json capture.\n"
                "Give the --out of an earlier `pdt source fetch`, or captures: NAME.body.* with "
                "request.url, status and headers in NAME.meta.json beside it."
            )

    def close(self) -> None:
        """As the client; nothing is held open."""

    def get(self, url: str) -> HttpAnswer:
        answer = self.find(url)
        self.requests += 1
        if answer is None:
            raise SourceRefused(url, "is not in the recording", "Fetch it from the network.")
        if answer.status != 200:
            raise SourceRefused(url, f"was recorded with status {answer.status}", "Choose another.")
        return answer

    def find(self, url: str) -> HttpAnswer | None:
        known = self._files.get(address(url))
        if known is None:
            return None
        path, exchange = known
        return HttpAnswer(
            url, exchange.status, exchange.headers, path.read_bytes(), exchange.received_at
        )

    def _add_bundle(self, directory: Path) -> None:
        bundle = read_bundle(directory)
        if "http" not in bundle.files:
            return
        data = (directory / bundle.files["http"].name).read_bytes()
        try:
            exchanges = TypeAdapter(list[Exchange]).validate_json(data)
        except ValueError as error:
            raise CorruptFile(f"{directory} has a broken http.json.\nTake it again.") from error
        for exchange in exchanges:
            if exchange.role in bundle.files:
                path = directory / bundle.files[exchange.role].name
                self._files[address(exchange.url)] = (path, exchange)

    def _add_capture(self, meta: Path) -> None:
        bodies = sorted(meta.parent.glob(meta.name.removesuffix("meta.json") + "body.*"))
        try:
            tree: Any = parse_json(meta.read_text(encoding="utf-8"))
            conditional = "If-None-Match" in tree["request"].get("headers", {})
            headers = {name.lower(): str(value) for name, value in tree["headers"].items()}
            url, status = str(tree["request"]["url"]), int(tree["status"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFile(f"{meta} is not a capture: {error}.\nTake it again.") from error
        if len(bodies) != 1 or conditional:
            return
        exchange = Exchange(
            role="capture",
            url=url,
            status=status,
            headers=headers,
            received_at=str(tree.get("received_at", _UNTOLD)),
            bytes=bodies[0].stat().st_size,
            sha256="0" * 64,
        )
        self._files.setdefault(address(url), (bodies[0], exchange))


def address(url: str) -> str:
    """What an address asks for, whatever host is asked and however it is spelled."""
    parts = urlsplit(url)
    query = sorted((k, v) for k, v in parse_qsl(parts.query) if k != "maxlag")
    return f"{parts.path.removeprefix('/w')}?{query}"
