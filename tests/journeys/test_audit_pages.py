"""The judging pages over HTTP: what they send, what they refuse, and what survives."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pdt.audit.answers import Role
from pdt.audit.closing import closed_form
from pdt.audit.store.audits import audit_row
from pdt.audit.store.chain import read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.people import invite
from pdt.audit.web.app import FORMS, audit_app
from pdt.audit.web.serve import serve_audit
from pdt.errors import UsageError
from tests.support.audits import (
    EXAMPLES,
    PASSPHRASE,
    VERDICT,
    invited,
    judge_all,
    small_audit,
    small_raw,
    team,
)
from tests.support.web_server import Answer, Site, serving

HTML = {"accept": "text/html"}


class Browser:
    """One person's browser: a cookie, the last page, and everything that was sent to it."""

    def __init__(self, site: Site) -> None:
        self.site, self.cookie, self.sent = site, "", ""
        self.page: Answer = Answer(0, {}, "")

    def get(self, path: str) -> Answer:
        return self._follow(self.site.ask("GET", path, None, self._headers()))

    def post(self, path: str, **fields: object) -> Answer:
        headers = self._headers() | {"content-type": "application/x-www-form-urlencoded"}
        return self._follow(self.site.ask("POST", path, urlencode(fields), headers))

    def field(self, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]*)"', self.page.text)
        assert found, f"the page has no field {name}: {self.page.text[:400]}"
        return unescape(found[1])

    def answer(self, answer: str, sentence: object = "", path: str = "/judge") -> Answer:
        return self.post(path, answer=answer, sentence=sentence, **self.form())

    def form(self) -> dict[str, str]:
        return {name: self.field(name) for name in ("form_token", "ticket", "showing")}

    def _headers(self) -> dict[str, str]:
        return HTML | ({"cookie": self.cookie} if self.cookie else {})

    def _follow(self, reply: Answer) -> Answer:
        self.sent += f"{reply.headers}\n{reply.text}\n"
        if "set-cookie" in reply.headers:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
        self.page = reply
        if reply.status == 303:
            return self.get(reply.headers["location"])
        return reply


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return small_audit(tmp_path / "a.db", 1)


@pytest.fixture
def site(database: Database) -> Iterator[Site]:
    with serving(audit_app(database)) as found:
        yield found


def entered(database: Database, site: Site, name: str, role: Role) -> Browser:
    with database.writing() as session:
        token = invite(session, name, [role])
    browser = Browser(site)
    assert browser.get(f"/invitation/{token}").status == 200
    page = browser.post("/invitation", token=token, passphrase=PASSPHRASE)
    assert page.status == 200 and f"Good to see you, {name}" in page.text
    return browser


def train(browser: Browser, path: str = "/judge") -> None:
    browser.get(path)
    while "Training:" in browser.page.text:
        claim = re.search(r'<p class="prose">(.*?)</p>', browser.page.text)
        assert claim
        example = EXAMPLES[unescape(claim[1])]
        mark = "" if example.sentence is None else example.sentence
        assert browser.answer(example.answer, mark, path).status == 200


TELLING = re.compile(
    r"oracle|\bzero\b|\blane\b|hard.?negative|\bstatement\b|screen|condition|owner|\bmodel\b"
    r"|\bf[1-4]\b|\br0\b",
    re.IGNORECASE,
)


@pytest.mark.paper("§7.2")
def test_no_byte_sent_to_an_annotator_tells_condition_lane_or_verdict(
    database: Database, site: Site
) -> None:
    ann = entered(database, site, "Ann", Role.ANNOTATOR)
    train(ann)
    for _ in range(30):
        ann.answer("no")
    for path in ("/", "/guidelines", "/break", "/judge", "/sign-in", "/people", "/adjudicate"):
        ann.get(path)
    ann.post("/judge/undo", form_token=ann.get("/judge") and ann.field("form_token"))
    for name in ("audit.css", "judge.js"):
        ann.sent += site.ask("GET", f"/static/{name}").text
    assert len(ann.sent) > 50_000
    assert TELLING.findall(ann.sent) == []


def test_every_page_has_the_headers_of_all_pages_and_no_script_inside(
    database: Database, site: Site
) -> None:
    ann = entered(database, site, "Ann", Role.ANNOTATOR)
    for path in ("/", "/judge", "/guidelines", "/nothing", "/people"):
        page = ann.get(path)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers.get("cache-control") == "no-store"
        assert not re.search(r"<script>|<style|style=|onclick=|https?://", page.text)
    ann.post("/sign-out", form_token=ann.get("/") and ann.field("form_token"))
    cookie = site.ask(
        "POST",
        "/sign-in",
        urlencode({"name": "Ann", "passphrase": PASSPHRASE}),
        {"content-type": "application/x-www-form-urlencoded"},
    ).headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie


def test_roles_are_held_on_every_route(database: Database, site: Site) -> None:
    people = {
        Role.ANNOTATOR: entered(database, site, "Ann", Role.ANNOTATOR),
        Role.ADJUDICATOR: entered(database, site, "Cy", Role.ADJUDICATOR),
        Role.OPERATOR: entered(database, site, "Op", Role.OPERATOR),
    }
    routes = {
        "/judge": Role.ANNOTATOR,
        "/adjudicate": Role.ADJUDICATOR,
        "/people": Role.OPERATOR,
    }
    for path, allowed in routes.items():
        for role, browser in people.items():
            assert browser.get(path).status == (200 if role is allowed else 403), (path, role)
            browser.get("/")
            token = browser.field("form_token")
            sent = {"ticket": "x", "showing": 0, "answer": "no", "name": "Eve", "role": "operator"}
            for form in (path, f"{path}/undo"):
                if form in FORMS and role is not allowed:
                    assert browser.post(form, form_token=token, **sent).status == 403
    stranger = Browser(site)
    for path in ("/", "/judge", "/adjudicate", "/people", "/guidelines", "/break"):
        assert "Sign in" in stranger.get(path).text
    for form in FORMS:
        if form not in ("/invitation", "/sign-in"):
            sent = {"ticket": "x", "showing": 0, "answer": "no", "name": "Eve", "role": "operator"}
            assert stranger.post(form, form_token="x", **sent).status == 401
    assert site.ask("GET", "/openapi.json").status == 404


def test_a_forged_item_anothers_item_and_anothers_form_are_refused(
    database: Database, site: Site
) -> None:
    ann = entered(database, site, "Ann", Role.ANNOTATOR)
    bob = entered(database, site, "Bob", Role.ANNOTATOR)
    train(ann)
    train(bob)
    theirs = bob.get("/judge") and bob.form()
    mine = ann.get("/judge") and ann.form()
    tried = [
        (mine | {"ticket": "0" * 32}, 404),
        (mine | {"ticket": theirs["ticket"]}, 404),
        (theirs, 403),  # Bob's form with Ann's cookie
        (mine | {"form_token": ""}, 400),
        (mine | {"form_token": "é" * 20}, 403),
        (mine | {"showing": "7"}, 409),
        (mine | {"showing": "-1"}, 400),
    ]
    for form, status in tried:
        assert ann.post("/judge", answer="no", **form).status == status, form
    assert ann.post("/judge", answer="perhaps", **mine).status == 409
    assert ann.post("/judge", answer="yes", sentence="9" * 50, **mine).status == 422
    assert ann.post("/judge", answer="yes", sentence="", **mine).status == 409
    assert ann.post("/judge", answer="no", remark="x" * 3000, **mine).status == 400
    with database.reading() as session:
        assert len(read_votes(session)) == 2 * 3, "only the training was counted"


def test_a_form_from_another_site_changes_nothing(database: Database, site: Site) -> None:
    ann = entered(database, site, "Ann", Role.ANNOTATOR)
    ann.get("/judge")
    headers = {
        "cookie": ann.cookie,
        "content-type": "application/x-www-form-urlencoded",
        "origin": "https://evil.example",
    }
    body = urlencode({"answer": "no", **ann.form()})
    assert site.ask("POST", "/judge", body, headers).status == 403
    assert site.ask("POST", "/judge", body, headers | {"origin": "null"}).status == 403
    assert site.ask("GET", "/", None, {"host": "evil.example"}).status == 421
    plain = headers | {"origin": site.url, "content-type": "text/plain"}
    assert site.ask("POST", "/judge", body, plain).status == 415
    with database.reading() as session:
        assert read_votes(session) == []


def test_an_answer_sent_again_is_counted_once_and_an_undo_too(
    database: Database, site: Site
) -> None:
    ann = entered(database, site, "Ann", Role.ANNOTATOR)
    train(ann)
    ann.get("/judge")
    form = ann.form()
    for _ in range(3):
        assert ann.post("/judge", answer="no", **form).status == 200
    shown = ann.form()
    for _ in range(2):
        undone = {"form_token": shown["form_token"], "ticket": shown["ticket"]}
        assert ann.post("/judge/undo", **undone).status == 200
    assert ann.form()["ticket"] == form["ticket"]
    with database.reading() as session:
        votes = [vote.answer for vote in read_votes(session)][3:]
    assert votes == ["no", None]


def test_wrong_passphrases_are_slowed_down_and_tell_nothing(database: Database, site: Site) -> None:
    invited(database, "Ann", Role.ANNOTATOR)
    eve = Browser(site)
    told = set()
    for name in ("Ann", "Nobody"):
        page = eve.post("/sign-in", name=name, passphrase="wrong wrong wrong")
        assert page.status == 403
        told.add(page.text)
    assert len(told) == 1
    statuses = [eve.post("/sign-in", name="Ann", passphrase=f"{n}" * 12).status for n in range(7)]
    assert statuses[-1] == 429
    assert eve.get("/invitation/nonsense").status == 403


def test_a_closed_audit_takes_no_vote(database: Database, site: Site) -> None:
    people = team(database)
    ann = Browser(site)
    ann.post("/sign-in", name="Ann", passphrase=PASSPHRASE)
    train(ann)
    ann.get("/judge")
    form = ann.form()
    for person in people:
        judge_all(database, person)
    with database.writing() as session:
        closed_form(session, small_raw(1), VERDICT)
        audit_row(session).closed_at = "2026-11-18T00:00:00+00:00"
    assert ann.post("/judge", answer="no", **form).status == 409
    assert "closed" in ann.page.text
    assert "closed" in ann.get("/").text


def test_an_adjudicator_sees_both_votes_and_no_names(database: Database, site: Site) -> None:
    ann, bob, _ = team(database)
    judge_all(database, ann)
    judge_all(database, bob, slips=0.3, seed=1)
    cy = Browser(site)
    cy.post("/sign-in", name="Cy", passphrase=PASSPHRASE)
    train(cy, "/adjudicate")
    page = cy.get("/adjudicate")
    assert page.text.count("One judgment") == 2
    assert "Ann" not in page.text and "Bob" not in page.text
    assert TELLING.findall(cy.sent) == []


def test_an_operator_sees_progress_and_invites_and_sees_no_answer(
    database: Database, site: Site
) -> None:
    judge_all(database, invited(database, "Ann", Role.ANNOTATOR), most=20)
    op = entered(database, site, "Op", Role.OPERATOR)
    page = op.get("/people")
    assert "17" in page.text and "last link" in page.text.lower()
    assert not re.search(r">\s*(yes|no|contradicted|cannot tell)\s*<", page.text)
    invited_page = op.post(
        "/people", form_token=op.field("form_token"), name="Bob", role="annotator"
    )
    link = re.search(r"/invitation/([\w-]+)", invited_page.text)
    assert link and Browser(site).get(link[0]).status == 200


def test_pages_open_to_a_network_want_https(database: Database) -> None:
    with pytest.raises(UsageError, match="in the open"):
        serve_audit(database, host="0.0.0.0", port=0, https=None, say=print)
    with serving(audit_app(database, https="audit.example.org")) as site:
        assert site.ask("GET", "/sign-in", None, {"host": "audit.example.org"}).status == 200
        assert site.ask("GET", "/sign-in").status == 400
