"""The audit's web application: routes, refusals, and what stands around them.

Paper: §7.2.
"""

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse
from sqlalchemy.exc import DBAPIError
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from pdt.audit.store.database import Database
from pdt.audit.web.entry import entry_routes
from pdt.audit.web.judge import judge_routes
from pdt.audit.web.people import people_routes
from pdt.audit.web.room import Room, SignInFirst
from pdt.web.app import guarded, new_app
from pdt.web.keys import Keys
from pdt.web.pages import Pages
from pdt.web.refusals import Refusal

PACKAGE = "pdt.audit.web"
BODY_BYTES = 16 << 10
FORMS = (
    "/invitation",
    "/sign-in",
    "/sign-out",
    "/judge",
    "/judge/undo",
    "/adjudicate",
    "/adjudicate/undo",
    "/people",
)
"""Everything that changes something."""
AWAY = (
    "The database does not answer just now.\n"
    "Nothing was counted. Try again in a moment; an answer given on the page is sent again."
)


def audit_app(database: Database, *, host: str = "127.0.0.1", https: str | None = None) -> ASGIApp:
    """The application behind its guards; `https` is the name that a proxy serves it under."""
    app = new_app("pdt audit", package=PACKAGE, documented=False)
    room = Room(database, Pages(PACKAGE), https is not None)
    for routes in (entry_routes(room), judge_routes(room), people_routes(room)):
        app.include_router(routes)
    _add_refusals(app)

    @app.get("/health")
    def health() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    inner = guarded(app, host=https or host, keys=Keys([]), body_bytes=BODY_BYTES, forms=FORMS)
    return inner if https is None else TrustedHostMiddleware(inner, allowed_hosts=[https])


def _add_refusals(app: FastAPI) -> None:
    refused = app.exception_handlers[Refusal]

    async def sign_in_first(request: Request, error: Exception) -> Response:
        return RedirectResponse("/sign-in", 303)

    async def away(request: Request, error: Exception) -> Response:
        return await refused(request, Refusal(503, AWAY, headers={"retry-after": "2"}))  # type: ignore[misc]

    app.add_exception_handler(SignInFirst, sign_in_first)
    app.add_exception_handler(DBAPIError, away)
