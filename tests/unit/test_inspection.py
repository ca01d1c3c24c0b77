"""Inspecting records in a browser: what the pages take, and what they refuse."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pdt.audit.inspect.app import Inspecting, inspection_app
from pdt.records.review import ReviewLog, document_sha256
from pdt.terms import Inspection
from tests.support.evaluations import chronicle_documents, small_config
from tests.support.web_server import Answer, Site, serving

FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "text/html"}


@pytest.fixture
def room(tmp_path: Path) -> Inspecting:
    documents = chronicle_documents(3)
    return Inspecting(documents, tmp_path / "reviews.jsonl", "Ada", small_config())


@pytest.fixture
def site(room: Inspecting) -> Iterator[Site]:
    with serving(inspection_app(room)) as found:
        yield found


def judge(site: Site, room: Inspecting, number: int, said: str, reason: str = "") -> Answer:
    document = room.documents[number]
    body = {"record": document.record_id, "sha256": document_sha256(document), "said": said,
            "reason": reason}  # fmt: skip
    return site.ask("POST", "/verdict", urlencode(body), FORM)


@pytest.mark.paper("§4.3")
def test_every_record_is_shown_accepted_or_rejected_with_a_reason_and_then_the_next(
    site: Site, room: Inspecting
) -> None:
    first, second, third = (document.record_id for document in room.documents)
    assert site.ask("GET", "/").headers["location"] == f"/record/{first}"
    page = site.ask("GET", f"/record/{first}").text
    assert "Accept" in page and room.documents[0].inventory.facts[0].statement.split()[0] in page
    assert f'href="/record/{second}"' in page and "0 of 3 inspected" in page
    assert judge(site, room, 0, "accepted", "read whole").headers["location"] == f"/record/{second}"
    assert judge(site, room, 1, "rejected").status == 400
    assert judge(site, room, 1, "rejected", "leaks f2").headers["location"] == f"/record/{third}"
    assert judge(site, room, 2, "accepted").headers["location"] == "/done"
    assert "Every record is inspected" in site.ask("GET", "/").text
    log = ReviewLog(room.reviews)
    assert [(r.reviewer, r.verdict, r.reason) for r in log.reviews] == [
        ("Ada", Inspection.ACCEPTED, "read whole"),
        ("Ada", Inspection.REJECTED, "leaks f2"),
        ("Ada", Inspection.ACCEPTED, "nothing found wrong"),
    ]
    assert "rejected by Ada: leaks f2" in site.ask("GET", f"/record/{second}").text


def test_a_verdict_on_another_record_than_was_shown_is_not_taken(
    site: Site, room: Inspecting
) -> None:
    first = room.documents[0].record_id
    body = {"record": first, "sha256": "0" * 64, "said": "accepted"}
    assert site.ask("POST", "/verdict", urlencode(body), FORM).status == 409
    assert judge(site, room, 0, "perhaps").status == 400
    body = {"record": "nothing", "sha256": "0" * 64, "said": "accepted"}
    assert site.ask("POST", "/verdict", urlencode(body), FORM).status == 404
    assert site.ask("GET", "/record/nothing").status == 404
    assert site.ask("GET", "/drawing/html.py").status == 404
    assert not room.reviews.exists()


def test_another_sites_form_is_refused(site: Site, room: Inspecting) -> None:
    body = urlencode({"record": "x", "sha256": "y", "said": "accepted"})
    there = FORM | {"origin": "http://elsewhere.example"}
    assert site.ask("POST", "/verdict", body, there).status == 403


def test_two_people_do_not_get_the_same_record_after_one_has_judged_it(
    site: Site, room: Inspecting
) -> None:
    ReviewLog(room.reviews).add(
        room.documents[0], Inspection.ACCEPTED, reviewer="Ben", reason="read"
    )
    assert site.ask("GET", "/").headers["location"] == f"/record/{room.documents[1].record_id}"
    names = re.findall(
        r'href="/record/([^"]+)"', site.ask("GET", "/record/" + room.documents[1].record_id).text
    )
    assert names == [room.documents[2].record_id]
