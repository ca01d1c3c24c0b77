"""What every route needs: the database, the pages, and who is asking."""

import hmac
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pdt.audit.answers import Role
from pdt.audit.store.audits import read_audit
from pdt.audit.store.database import Database
from pdt.audit.store.people import SESSION_DAYS, Person, person_of
from pdt.web.pages import Pages
from pdt.web.refusals import Refusal

COOKIE = "pdt_audit"


class SignInFirst(Exception):
    """A page that needs a session, asked for without one."""


@dataclass(frozen=True)
class Room:
    """The audit as its routes see it."""

    database: Database
    pages: Pages
    https: bool

    def asking(self, request: Request) -> Person:
        """Who asks for a page; without a session they are sent to sign in."""
        person = self._person(request)
        if person is None:
            raise SignInFirst
        return person

    def acting(self, request: Request, form_token: str, role: Role | None = None) -> Person:
        """Who sends a form: their session, the token of their own pages, and the role it takes."""
        person = self._person(request)
        if person is None:
            raise Refusal(401, "Your session has ended.\nSign in again; nothing is lost.")
        if not hmac.compare_digest(person.form_token.encode(), form_token.encode()):
            raise Refusal(403, "This form is not of your session.\nLoad the page again.")
        return self.allowed(person, role)

    def allowed(self, person: Person, role: Role | None) -> Person:
        if role is not None and role not in person.roles:
            raise Refusal(403, f"This page is for an {role}.")
        return person

    def page(
        self, template: str, person: Person | None, *, status: int = 200, **values: object
    ) -> HTMLResponse:
        with self.database.reading() as session:
            name = read_audit(session).plan.name
        return self.pages.page(template, status=status, person=person, audit=name, **values)

    def let_in(self, token: str) -> RedirectResponse:
        """To the start, with the session's cookie: no script reads it, no other site sends it."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE,
            token,
            max_age=int(SESSION_DAYS * 86400),
            httponly=True,
            samesite="strict",
            secure=self.https,
        )
        return answer

    def _person(self, request: Request) -> Person | None:
        token = request.cookies.get(COOKIE, "")
        if not token:
            return None
        with self.database.reading() as session:
            return person_of(session, token)
