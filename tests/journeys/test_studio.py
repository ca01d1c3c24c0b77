"""The studio in a real browser: Debian's Chromium, driven by Playwright."""

import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from pdt.generation.writer import Writer
from pdt.serve.app import build
from pdt.serve.engine import Engine
from tests.support.servers import REQUEST, SOURCE, served, tiny_writer
from tests.support.web_server import Site, serving

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


def begin(page: Page, *, pause: bool, tokens: int = 30, drafts: int = 0) -> None:
    page.goto("/")
    page.fill("#source", SOURCE)
    page.fill("#request", REQUEST)
    page.fill("#max_tokens", str(tokens))
    page.fill("#drafts", str(drafts))
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
    page.wait_for_timeout(700)  # a wait that the ledger must tell from writing
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
    expect(page.locator("#ledger")).to_contain_text("in all with waits")
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
    for _ in range(4):
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
    expect(page.get_by_role("dialog", name="Put a hand in")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("x")
    expect(page.locator("#status")).to_have_attribute(
        "data-status", re.compile("cancelled|done"), timeout=60_000
    )


def test_a_sentence_shows_its_source_sentence_and_what_is_not_in_it(page: Page) -> None:
    begin(page, pause=False)
    stands(page, "done")
    page.evaluate(
        """async () => {
            const { Source, Found } = await import("/static/sentences.js");
            const box = document.getElementById("source");
            box.textContent = "# Orlen\\n\\nThe walls were high. " +
                "Mara Voss held the gate in 1402. It rained.";
            const found = new Found(document.getElementById("found"), new Source(box));
            const sentence = document.querySelector(".sentence");
            sentence.textContent = "Then Mara Voss of Kell held the gate with 94 men.";
            found.show(sentence);
            window.hide = () => found.show(null);
        }"""
    )
    told = page.get_by_role("tooltip")
    expect(told).to_contain_text("Mara Voss held the gate in 1402.")
    expect(told).to_contain_text("Source · Orlen")
    expect(told).to_contain_text("Not in it: Kell, 94")
    assert told.locator("b").all_inner_texts() == ["Mara", "Voss", "held", "the", "gate"]
    assert page.locator("#source .lit").inner_text().strip() == "Mara Voss held the gate in 1402."
    described = page.locator(".sentence").first.get_attribute("aria-describedby")
    assert described == "found"
    page.evaluate("window.hide()")
    expect(told).to_be_hidden()


def test_a_sentence_under_the_pointer_or_in_focus_is_told(page: Page) -> None:
    begin(page, pause=False)
    stands(page, "done")
    page.locator(".sentence").first.hover()
    expect(page.get_by_role("tooltip")).to_be_visible()
    page.mouse.move(2, 2)
    expect(page.get_by_role("tooltip")).to_be_hidden()
    page.locator(".sentence").first.focus()
    expect(page.get_by_role("tooltip")).to_be_visible()


def test_a_node_and_a_note_take_a_hand_and_a_run_is_replayed_to_the_token(page: Page) -> None:
    begin(page, pause=False, drafts=3)
    stands(page, "done")
    order = [one.get_attribute("data-lane") for one in page.locator(".lane").all()]
    places = page.locator(".lane .place").all_inner_texts()
    assert places == [f"section {n} of 3" for n in (1, 2, 3)], "read in another order than seen"
    lane = int(order[0] or 0)
    page.locator(".nodes button").first.click()
    expect(page.locator("#handspec")).to_have_text(re.compile(rf"drop-node:{lane}\.\d"))
    page.click("#handclose")
    page.locator("#notes .cells").nth(1).click()
    expect(page.locator("#handspec")).to_have_text("mutate-code:1@0")
    page.click("#handclose")
    page.click("#replay")
    page.wait_for_url("**/beside/**")
    expect(page.locator("#verdict")).to_contain_text("The replay is the same", timeout=60_000)
    expect(page.locator(".same").first).to_have_text("the same")
    page.goto("/runs")
    expect(page.locator("time").first).to_have_text(re.compile(r"\d"))
    page.goto(page.locator(".runs a").first.get_attribute("href") or "")
    page.click("#again")
    expect(page.locator("#source")).to_have_value(SOURCE)
    expect(page.locator("#drafts")).to_have_value("3")


def test_what_comes_is_written_into_the_page_once_a_frame(page: Page) -> None:
    """Three lanes of 1,500 words come in bursts, as behind a proxy that held them back."""
    begin(page, pause=False)
    stands(page, "done")
    early, changes, middle = page.evaluate(
        """async () => {
            const { Columns } = await import("/static/columns.js");
            const root = document.getElementById("lanes");
            const none = () => {};
            const told = { onSentence: none, onNode: none, onNodeLit: none };
            const columns = new Columns(root, { codes: 256, ...told });
            let changes = 0, early = 0;
            const observer = new MutationObserver(none);
            observer.observe(root, { subtree: true, childList: true, characterData: true });
            const took = [];
            for (let burst = 0; burst < 60; burst++) {
                for (let word = 0; word < 25; word++)
                    for (const lane of [0, 1, 2])
                        columns.write(lane, word === 12 ? " end. Then" : " word");
                early += observer.takeRecords().length;
                const before = performance.now();
                columns.draw();
                took.push(performance.now() - before);
                changes = Math.max(changes, observer.takeRecords().length);
            }
            return [early, changes, took.sort((a, b) => a - b)[30]];
        }"""
    )
    assert early == 0, "a token was written before its frame"
    assert changes <= 3 * 4, "a lane's text is added to, and one sentence begun"
    assert middle < 30, f"the middle frame took {middle:.1f} ms of script"


def test_a_page_that_came_before_the_model_says_so_and_looks_again(browser: Browser) -> None:
    come = threading.Event()

    def load() -> Writer:
        assert come.wait(60)
        return tiny_writer()

    app, _ = build(load, model_name="tiny", grace=0)
    with serving(app) as site:
        page = browser.new_page(base_url=site.url)
        page.goto("/")
        expect(page.locator("#loading")).to_be_visible()
        page.fill("#source", SOURCE)
        page.fill("#request", REQUEST)
        page.click("button[type=submit]")
        expect(page.locator("#refused")).to_contain_text("being loaded")
        come.set()
        expect(page.locator("#loading")).to_be_hidden()
        page.click("button[type=submit]")
        page.wait_for_url("**/runs/gen_*")
        page.close()


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
