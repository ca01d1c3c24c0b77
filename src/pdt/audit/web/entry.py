"""Coming in and going out: invitations, signing in, signing out, the first page."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pdt.audit.answers import Role
from pdt.audit.status import own_progress
from pdt.audit.store.people import (
    SHORTEST_PASSPHRASE,
    accept,
    person_of,
    sign_in,
    sign_out,
    valid_invitation,
)
from pdt.audit.store.schema import PersonRow
from pdt.audit.web.room import COOKIE, Room
from pdt.audit.web.throttle import Throttle
from pdt.errors import AuditRefused

Text = Annotated[str, Form(max_length=600)]


def entry_routes(room: Room) -> APIRouter:
    router, throttle = APIRouter(), Throttle()

    @router.get("/")
    def start(request: Request) -> HTMLResponse:
        person = room.asking(request)
        with room.database.reading() as session:
            progress = own_progress(session, person)
        return room.page("start.html", person, progress=progress, roles=Role)

    @router.get("/invitation/{token}")
    def invitation(token: str) -> HTMLResponse:
        with room.database.reading() as session:
            found = valid_invitation(session, token)
            name = session.get_one(PersonRow, found.person).name
        return room.page("invitation.html", None, token=token, name=name, least=SHORTEST_PASSPHRASE)

    @router.post("/invitation")
    def take_up(token: Text, passphrase: Text) -> RedirectResponse:
        with room.database.writing() as session:
            return room.let_in(accept(session, token, passphrase))

    @router.get("/sign-in")
    def sign_in_page(request: Request) -> HTMLResponse:
        return room.page("sign_in.html", None, wrong="")

    @router.post("/sign-in", response_model=None)
    def signing_in(name: Text, passphrase: Text) -> HTMLResponse | RedirectResponse:
        throttle.check(name)
        try:
            with room.database.writing() as session:
                token = sign_in(session, name, passphrase)
        except AuditRefused as error:
            throttle.failed(name)
            return room.page("sign_in.html", None, status=error.status, wrong=str(error))
        return room.let_in(token)

    @router.post("/sign-out")
    def signing_out(request: Request, form_token: Text) -> RedirectResponse:
        room.acting(request, form_token)
        with room.database.writing() as session:
            token = request.cookies[COOKIE]
            assert person_of(session, token) is not None
            sign_out(session, token)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(COOKIE)
        return answer

    return router
