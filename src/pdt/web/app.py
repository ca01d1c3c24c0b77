"""A web application of pdt, with everything that all of them have around it."""

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp

from pdt.errors import AuditRefused, PdtError, UsageError
from pdt.web.guards import Guards
from pdt.web.headers import SecurityHeaders
from pdt.web.keys import Keys
from pdt.web.pages import Files, Pages
from pdt.web.refusals import Refusal

MACHINE_PATHS = ("/v1", "/static", "/health", "/ready", "/metrics", "/openapi.json")
"""Where a refusal is JSON; elsewhere a browser gets a page."""


def new_app(title: str, *, package: str, description: str = "", documented: bool = True) -> FastAPI:
    """An application that serves the shared files and its own, and refuses in one shape.

    FastAPI's own documentation pages take their scripts from another host, so they are off.
    """
    app = FastAPI(
        title=title,
        description=description,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if documented else None,
    )
    pages = Pages(package)
    app.router.routes.append(Mount("/static/shared", Files("pdt.web")))
    app.router.routes.append(Mount("/static", Files(package)))

    async def refused(request: Request, error: Exception) -> Response:
        refusal = as_refusal(error)
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and not request.url.path.startswith(MACHINE_PATHS):
            return pages.page(
                "refused.html",
                status=refusal.status,
                title=_TITLES.get(refusal.status, "That did not work"),
                message=refusal.message,
            )
        return refusal.response()

    for kind in (Refusal, PdtError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, refused)
    return app


def guarded(
    app: FastAPI,
    *,
    host: str,
    keys: Keys,
    body_bytes: int = 8 << 20,
    origins: Sequence[str] = (),
    forms: Sequence[str] = (),
) -> ASGIApp:
    """The application behind its guards, with security headers on whatever answers."""
    inner: ASGIApp = app
    if origins:
        from starlette.middleware.cors import CORSMiddleware

        inner = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type"],
        )
    behind = Guards(
        inner, host=host, keys=keys, body_bytes=body_bytes, origins=origins, forms=forms
    )
    return SecurityHeaders(behind)


def as_refusal(error: Exception) -> Refusal:
    """Any error as a refusal; one that nobody foresaw tells a client nothing of its inside."""
    match error:
        case Refusal():
            return error
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            if isinstance(error.__cause__, Refusal):  # FastAPI wraps what reading a body raised
                return error.__cause__
            return Refusal(error.status_code, str(error.detail), headers=error.headers)
        case AuditRefused():
            return Refusal(error.status, str(error))
        case UsageError():
            return Refusal(400, str(error))
        case _:
            return Refusal(500, "The server failed at this request; its log says more.")


def _invalid(error: RequestValidationError) -> Refusal:
    """The first thing wrong with a request, with its field named; every other one is counted."""
    problems = error.errors()
    first = problems[0]
    where = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    if first["type"] == "json_invalid":
        return Refusal(400, "The body is not JSON.", code="invalid_json")
    param = ".".join(where) or None
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return Refusal(400, f"{param or 'The request'}: {first['msg']}{more}.", param=param)


_TITLES = {
    400: "That cannot be asked",
    404: "Nothing is here",
    413: "That is too large",
    429: "Too many at once",
    503: "Not ready",
}
