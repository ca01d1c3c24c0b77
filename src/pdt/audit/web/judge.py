"""The judging pages: one decision at a time, for annotators and for adjudicators."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy.orm import Session

from pdt.audit.adjudication import next_dispute, settle
from pdt.audit.answers import LONGEST_REMARK, POINTS, Purpose, Role
from pdt.audit.judging import Shown, cast, next_item, take_back
from pdt.audit.store.people import Person
from pdt.audit.web.room import Room
from pdt.web.refusals import Refusal

KEYS = "123456789acdefhijklmopqstvwyz"
"""One key a sentence; n, x, u, r, b and g do something else."""
Text = Annotated[str, Form(max_length=4 * LONGEST_REMARK)]
Next = Callable[[Session, Person], Shown | None]
Count = Callable[[Session, Person, str, int, str, int | None, str], bool]


def judge_routes(room: Room) -> APIRouter:
    router = APIRouter()
    _add(router, room, "/judge", Role.ANNOTATOR, next_item, cast)
    _add(router, room, "/adjudicate", Role.ADJUDICATOR, next_dispute, settle)

    @router.get("/break")
    def pause(request: Request) -> HTMLResponse:
        person = room.asking(request)
        back = "/judge" if Role.ANNOTATOR in person.roles else "/adjudicate"
        return room.page("break.html", person, back=back)

    @router.get("/guidelines")
    def guidelines(request: Request) -> HTMLResponse:
        return room.page("guidelines.html", room.asking(request))

    return router


def _add(
    router: APIRouter, room: Room, path: str, role: Role, next_shown: Next, count: Count
) -> None:
    """One kind of judging: show the next, count an answer, take one back."""

    @router.get(path)
    def show(request: Request) -> HTMLResponse:
        person = room.allowed(room.asking(request), role)
        with room.database.writing() as session:
            shown = next_shown(session, person)
        if shown is None:
            return room.page("done.html", person, path=path)
        return room.page(
            "judge.html", person, shown=shown, path=path, keys=KEYS, longest=LONGEST_REMARK
        )

    @router.post(path)
    def answer(
        request: Request,
        form_token: Text,
        ticket: Text,
        showing: Annotated[int, Form(ge=0)],
        answer: Text,
        sentence: Text = "",
        remark: Text = "",
    ) -> RedirectResponse:
        person = room.acting(request, form_token, role)
        mark = _number(sentence) if answer in POINTS else None
        with room.database.writing() as session:
            count(session, person, ticket, showing, answer, mark, remark)
        return RedirectResponse(path, 303)

    @router.post(f"{path}/undo")
    def undo(request: Request, form_token: Text, ticket: Text = "") -> RedirectResponse:
        person = room.acting(request, form_token, role)
        mine = {
            Role.ANNOTATOR: (Purpose.JUDGMENT, Purpose.REPEAT),
            Role.ADJUDICATOR: (Purpose.ADJUDICATION,),
        }[role]
        with room.database.writing() as session:
            shown = next_shown(session, person)
            # Sent twice, it comes from a page that shows what is no longer the next item.
            if ticket == (shown.ticket if shown else ""):
                take_back(session, person, mine)
        return RedirectResponse(path, 303)


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise Refusal(422, "The mark is not a sentence's number.")
    return int(text)
