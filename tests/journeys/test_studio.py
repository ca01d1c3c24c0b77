"""The studio in a real browser: Debian's Chromium, driven by Playwright."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from pdt.serve.engine import Engine
from tests.support.servers import REQUEST, SOURCE, served, tiny_writer
from tests.support.web_server import Site

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PHONE = {"width": 390, "height": 844}
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[Site, Engine]]:
    with served(tiny_writer()) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture
def page(browser: Browser, site: tuple[Site, Engine]) -> Iterator[Page]:
    """A page in which nothing may go wrong: no script error, no breach of the policy."""
    context = browser.new_context(base_url=site[0].url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(60_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert wrong == []


def begin(page: Page, *, pause: bool, tokens: int = 30) -> None:
    page.goto("/")
    page.fill("#source", SOURCE)
    page.fill("#request", REQUEST)
    page.fill("#max_tokens", str(tokens))
    page.set_checked("[name=pause]", pause)
    page.click("button[type=submit]")
    page.wait_for_url("**/runs/gen_*")


def stands(page: Page, status: str) -> None:
    expect(page.locator("#status")).to_have_attribute("data-status", status, timeout=60_000)


def texts(page: Page) -> list[str]:
    return [page.locator(f".lane[data-lane='{lane}'] .text").inner_text() for lane in range(3)]


def test_a_person_pauses_edits_goes_on_reloads_branches_and_compares(page: Page) -> None:
    begin(page, pause=True)
    stands(page, "paused")
    assert page.locator("#notes tbody tr").count() == 1
    assert page.locator(".nodes li[aria-current]").count() >= 1
    page.click("#edit")
    page.select_option("#kind", "remove-notes")
    expect(page.locator("#handspec")).to_have_text("remove-notes:0")
    page.click("#handdo")
    expect(page.locator("#edits")).to_have_text("remove-notes:0")
    page.click("#step")
    expect(page.locator("#notes tbody tr")).to_have_count(2)
    page.click("#resume")
    stands(page, "done")
    written = texts(page)
    assert all(written)
    assert page.locator("#ledger dd").count() == 6
    page.reload()
    stands(page, "done")
    expect(page.locator("#ledger dd")).to_have_count(6)
    assert texts(page) == written
    with page.expect_download() as markdown:
        page.click("text=Markdown")
    text = Path(markdown.value.path()).read_text(encoding="utf-8")
    assert REQUEST in text and "remove-notes:0" in text
    page.click("#restart")
    page.select_option("#kind", "swap-plans")
    page.click("#handdo")
    page.wait_for_url("**/beside/**")
    expect(page.locator(".status[data-of=right]")).to_have_attribute("data-status", "done")
    expect(page.locator("mark").first).to_be_visible()
    assert page.locator(".edits[data-of=right]").inner_text() == "swap-plans:0,1"


def test_every_part_is_reached_by_keyboard_and_named_for_a_screen_reader(page: Page) -> None:
    page.goto("/")
    for role in ("banner", "main", "contentinfo", "navigation"):
        expect(page.get_by_role(role)).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.get_by_role("textbox", name=re.compile("^Source")).focus()
    page.keyboard.type(SOURCE.replace("\n", " "))
    page.keyboard.press("Tab")
    page.keyboard.type(REQUEST)
    page.keyboard.press("Tab")
    page.keyboard.type("200")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Write")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/gen_*")
    stands(page, "paused")
    for lane in range(3):
        expect(page.get_by_role("region", name=re.compile(f"Lane {lane}"))).to_be_visible()
    page.keyboard.press("e")
    expect(page.get_by_role("dialog", name="Put a hand in")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("x")
    expect(page.locator("#status")).to_have_attribute(
        "data-status", re.compile("cancelled|done"), timeout=60_000
    )


def test_a_sentence_shows_the_sentence_of_the_source_that_is_nearest(page: Page) -> None:
    begin(page, pause=False)
    stands(page, "done")
    page.evaluate(
        """async (text) => {
            const { Source } = await import("/static/sentences.js");
            const box = document.getElementById("source");
            box.textContent = "The walls were high. Mara Voss held the gate of Orlen. It rained.";
            window.found = new Source(box).light(text);
        }""",
        "Then Mara Voss held the gate.",
    )
    assert page.evaluate("window.found") == "Mara Voss held the gate of Orlen."
    assert page.locator("#source .lit").count() == 1


def test_a_refusal_is_shown_where_it_was_asked(browser: Browser, site: tuple[Site, Engine]) -> None:
    page = browser.new_page(base_url=site[0].url)
    page.goto("/")
    page.fill("#source", "word " * 2000)
    page.fill("#request", REQUEST)
    page.click("button[type=submit]")
    expect(page.locator("#refused")).to_contain_text("Nothing is cut to fit")
    page.goto("/runs/gen_unknown")
    expect(page.get_by_role("heading", name="Nothing is here")).to_be_visible()
    page.close()


def test_it_fits_a_phone_in_the_dark(page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="dark")
    begin(page, pause=False)
    stands(page, "done")
    for path in (None, "/runs", "/"):
        if path is not None:
            page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
