"""The operator's page: who has done how much, and new invitations. No answer is on it."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse

from pdt.audit.answers import Role
from pdt.audit.status import status_of
from pdt.audit.store.people import INVITATION_DAYS, invite
from pdt.audit.web.room import Room
from pdt.web.refusals import Refusal

Text = Annotated[str, Form(max_length=200)]


def people_routes(room: Room) -> APIRouter:
    router = APIRouter()

    @router.get("/people")
    def people(request: Request) -> HTMLResponse:
        person = room.allowed(room.asking(request), Role.OPERATOR)
        with room.database.reading() as session:
            status = status_of(session)
        return room.page("people.html", person, found=status, roles=list(Role))

    @router.post("/people")
    def inviting(request: Request, form_token: Text, name: Text, role: Text) -> HTMLResponse:
        person = room.acting(request, form_token, Role.OPERATOR)
        if role not in set(Role):
            raise Refusal(422, f"{role[:40]!r} is no role.")
        with room.database.writing() as session:
            token = invite(session, name, [Role(role)])
        link = f"{request.base_url}invitation/{token}"
        return room.page("invited.html", person, link=link, name=name, days=INVITATION_DAYS)

    return router
