"""Judging by keyboard in a real browser: two people at once, a lost connection, a reload."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from pdt.audit.answers import Role
from pdt.audit.opening import AuditAsked
from pdt.audit.store.chain import Vote, read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.people import invite
from pdt.audit.web.app import audit_app
from tests.support.audits import EXAMPLES, PASSPHRASE, small_audit
from tests.support.web_server import Site, serving

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def come_in(database: Database, site: Site, chromium: Browser, name: str) -> Page:
    with database.writing() as session:
        token = invite(session, name, [Role.ANNOTATOR])
    page = chromium.new_context(viewport={"width": 1200, "height": 850}).new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{site.url}/invitation/{token}")
    page.fill("#passphrase", PASSPHRASE)
    page.click("button.primary")
    page.click("a.primary")
    page.wait_for_selector("#answer")
    return page


def press(page: Page, key: str) -> None:
    """One key, and the next item."""
    before = page.input_value("#answer input[name=ticket]")
    page.keyboard.press(key)
    moved = "ticket => document.querySelector('#answer input[name=ticket]')?.value !== ticket"
    page.wait_for_function(moved, arg=before)


def key_of(page: Page) -> str:
    """What a person who reads well presses."""
    words = page.inner_text(".claim p")
    if "Training" in page.inner_text(".progress"):
        example = EXAMPLES[words]
        if example.sentence is None:
            return "n" if example.answer == "no" else "x"
        return ("Shift+" if example.answer == "contradicted" else "") + str(example.sentence + 1)
    sentences = page.locator(".sentence span").all_inner_texts()
    return str(sentences.index(words) + 1) if words in sentences else "n"


def votes_of(database: Database) -> list[Vote]:
    with database.reading() as session:
        return read_votes(session)


@pytest.mark.paper("§7.2")
def test_two_people_judge_at_once_by_keyboard_and_nothing_is_lost(
    tmp_path: Path, chromium: Browser
) -> None:
    database = small_audit(tmp_path / "a.db", 1, AuditAsked(conditions=("oracle",)))
    with serving(audit_app(database)) as site:
        ann, bob = (come_in(database, site, chromium, name) for name in ("Ann", "Bob"))
        for _ in range(6):
            for page in (ann, bob):
                press(page, key_of(page))
        press(ann, "u")
        assert "3 of" in ann.inner_text(".progress")
        # A key without a marked sentence asks for one, and counts nothing.
        ann.keyboard.press("Enter")
        ann.wait_for_selector("text=Mark the sentence first")
        before = len(votes_of(database))
        ann.context.set_offline(True)
        ann.keyboard.press("n")
        ann.wait_for_selector("text=Your answer is kept")
        assert len(votes_of(database)) == before
        ann.context.set_offline(False)
        ann.wait_for_function("() => !localStorage.getItem('pdt-audit-answer')")
        assert len(votes_of(database)) == before + 1
        # Closed while it could not be sent: the next page sends it.
        bob.context.set_offline(True)
        bob.keyboard.press("x")
        bob.wait_for_selector("text=Your answer is kept")
        bob.context.set_offline(False)
        bob.goto(f"{site.url}/judge")
        bob.wait_for_function("() => !localStorage.getItem('pdt-audit-answer')")
        assert len(votes_of(database)) == before + 2
        # A double press is one answer.
        ticket = ann.input_value("#answer input[name=ticket]")
        ann.evaluate(
            "() => { for (let n = 0; n < 2; n++) document.dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'n', bubbles: true })) }"
        )
        ann.wait_for_function(
            "ticket => document.querySelector('#answer input[name=ticket]').value !== ticket",
            arg=ticket,
        )
        assert len(votes_of(database)) == before + 3
    answers = [vote for vote in votes_of(database) if vote.purpose != "training"]
    assert [vote.answer for vote in answers].count(None) == 1
