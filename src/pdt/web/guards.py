"""What stands before every request: the host's name, the key, and the size of what is sent."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pdt.web.keys import Keys, is_loopback
from pdt.web.refusals import Refusal

HEADER_BYTES = 16 << 10
OPEN_TO_ALL = frozenset({"/health"})
"""Paths that need no key: whether the process lives is no secret."""
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Guards:
    """ASGI middleware that refuses before anything of a request is read or parsed.

    A web page elsewhere may make a browser send requests here. So a server on loopback answers
    only to the names of loopback (a foreign name may point there), and what changes anything must
    be JSON and come from no other origin.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        keys: Keys,
        body_bytes: int,
        origins: Collection[str] = (),
        forms: Collection[str] = (),
    ) -> None:
        self._app = app
        self._host, self._keys, self._body_bytes = host, keys, body_bytes
        self._origins, self._forms = frozenset(origins), frozenset(forms)
        """Other origins that may ask, and paths that take a form of our own pages."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                return
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_size_of_head(scope, headers)
            self._check_names(scope, headers)
            scope.setdefault("state", {})["holder"] = self._check_key(scope, headers)
            self._check_body(scope, headers)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send)
            return
        await _Counted(self._app, self._body_bytes)(scope, receive, send)

    def _check_size_of_head(self, scope: Scope, headers: Headers) -> None:
        size = len(scope.get("query_string", b"")) + len(scope["path"])
        size += sum(len(name) + len(value) for name, value in headers.raw)
        if size > HEADER_BYTES:
            if len(headers.get("authorization", "")) > HEADER_BYTES // 2:
                raise self._no_key()
            raise Refusal(431, f"Path and headers have {size} bytes; the limit is {HEADER_BYTES}.")

    def _check_names(self, scope: Scope, headers: Headers) -> None:
        name = _without_port(headers.get("host", ""))
        if is_loopback(self._host) and not is_loopback(name):
            raise Refusal(
                421,
                f"This server answers to loopback names only, not to {name[:80]!r}.\n"
                "Start it with --host for another name.",
            )
        origin = headers.get("origin")
        if origin is None or origin in self._origins or scope["method"] not in WRITES:
            return
        if origin.partition("://")[2] != headers.get("host"):
            raise Refusal(403, f"Requests from the origin {origin[:80]!r} are not taken.")

    def _check_key(self, scope: Scope, headers: Headers) -> str:
        preflight = scope["method"] == "OPTIONS" and headers.get("origin") in self._origins
        if not self._keys or scope["path"] in OPEN_TO_ALL or preflight:
            return ""
        holder = self._keys.holder(headers.get("authorization"))
        if holder is None:
            raise self._no_key()
        return holder

    def _check_body(self, scope: Scope, headers: Headers) -> None:
        length = headers.get("content-length")
        if length is not None and (not length.isdecimal() or int(length) > self._body_bytes):
            raise too_large(self._body_bytes)
        if scope["method"] not in WRITES or (length in (None, "0") and not _chunked(headers)):
            return
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        form = kind == "application/x-www-form-urlencoded" and scope["path"] in self._forms
        if kind != "application/json" and not form:
            raise Refusal(415, f"The body is {kind[:80] or 'of no type'!r}; send application/json.")

    def _no_key(self) -> Refusal:
        return Refusal(
            401,
            "No API key, or one that is not known here.\nSend it as `Authorization: Bearer KEY`.",
            code="invalid_api_key",
            headers={"www-authenticate": 'Basic realm="pdt", charset="UTF-8"'},
        )


class _Counted:
    """A body that says no length, or a wrong one, is cut off at the limit too."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen, begun = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise too_large(self._limit)
            return message

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except Refusal as refusal:
            if begun:
                raise
            await refusal.response()(scope, receive, send)


def too_large(limit: int) -> Refusal:
    return Refusal(413, f"The body has more than {limit} bytes, the limit here.")


def _chunked(headers: Headers) -> bool:
    return "transfer-encoding" in headers


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
