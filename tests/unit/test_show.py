"""The page and the terminal show what the record says, and a hostile text stays text."""

from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pdt.config import PdtConfig
from pdt.records.show.html import render_page
from pdt.records.show.terminal import render
from pdt.records.show.view import ShownMark, View, cut, view_document
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import load_tokenizer
from tests.support.record_samples import document, quote, sample, sample_config, train_tokenizer

EVIL = "<script>alert('x')</script> & \"quoted\" [bold]"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> PdtConfig:
    return sample_config(train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json"))


def view(config: PdtConfig, data: dict[str, Any] | None = None) -> View:
    made = document() if data is None else TaughtDocument.model_validate(data)
    return view_document(made, config, load_tokenizer(config.records.tokenizer))


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_runs_join_to_the_text() -> None:
    text = "In 1412 they came."
    marks = [ShownMark(3, 7, "owner", "f1"), ShownMark(0, 12, "reference", "f2")]
    runs = cut(text, marks, {0: 0, 5: 1})
    assert "".join(run.text for run in runs) == text
    assert [run.block for run in runs] == [0, None, 1, None, None]


def test_every_lane_shows_its_whole_section_and_all_block_borders(config: PdtConfig) -> None:
    for lane in view(config).lanes:
        section = document().answer.sections[lane.lane]
        shown = ["".join(run.text for run in p.runs) for p in lane.paragraphs]
        assert shown == list(section.paragraphs)
        borders = [run.block for p in lane.paragraphs for run in p.runs if run.block is not None]
        assert borders == sorted(borders)
        assert borders[0] == 0


def test_the_page_marks_owners_references_and_dependencies(config: PdtConfig) -> None:
    page = Page(render_page(view(config)))
    marks = [attrs for tag, attrs in page.tags if tag == "mark"]
    assert {a["data-fact"] for a in marks if "data-fact" in a} == {f"f{n}" for n in range(1, 7)}
    assert {a["data-sends"] for a in marks if "data-sends" in a} == {"d1", "d2"}
    assert {a["data-receives"] for a in marks if "data-receives" in a} == {"d1", "d2"}
    assert "All 44 rules hold" in page.text


def test_a_token_that_is_chosen_without_its_note_is_marked(config: PdtConfig) -> None:
    data = sample()
    said = quote(data["answer"]["sections"][1]["paragraphs"][0], "Nobody had won")
    data["answer"]["dependencies"][0]["receiver"].update(node=0, quote=said)
    shown = view(config, data)
    (lane,) = [lane for lane in shown.lanes if lane.lane == 1]
    marked = [
        run.text
        for paragraph in lane.paragraphs
        for run in paragraph.runs
        if any(mark.kind == "unreachable" and mark.name == "d1" for mark in run.marks)
    ]
    assert "".join(marked) == "Nobody had won"
    page = Page(render_page(shown))
    assert any(attrs.get("data-unreachable") == "d1" for tag, attrs in page.tags if tag == "mark")


def test_the_page_asks_nothing_of_the_network(config: PdtConfig) -> None:
    text = render_page(view(config))
    for tag, attrs in Page(text).tags:
        assert tag not in ("link", "img", "iframe", "object")
        assert "src" not in attrs
        assert "href" not in attrs
    assert "default-src 'none'" in text
    assert "url(" not in text.replace("url(#head)", "")


def test_a_hostile_text_stays_text(config: PdtConfig) -> None:
    data = sample()
    data["article"]["title"] = EVIL
    data["answer"]["request"] = EVIL
    data["answer"]["plans"][0]["nodes"][0]["objective"] = EVIL
    data["answer"]["sections"][1]["paragraphs"][1] += " " + EVIL
    for fact in data["inventory"]["facts"]:
        fact["statement"] += " " + EVIL
        fact["hard_negative"]["statement"] = EVIL
    shown = view(config, data)
    page = Page(render_page(shown))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert page.text.count("<script>alert('x')</script>") >= 10
    output = StringIO()
    render(Console(file=output, width=200), shown)
    assert "[bold]" in output.getvalue()


def test_failures_are_shown(config: PdtConfig) -> None:
    data = sample()
    data["answer"]["lane_at_position"] = [0, 1, 2]
    shown = view(config, data)
    assert "dependency_order" in Page(render_page(shown)).text
    output = StringIO()
    render(Console(file=output, width=160), shown)
    assert "dependency_order" in output.getvalue()


def test_a_broken_document_can_still_be_looked_at(config: PdtConfig) -> None:
    data = sample()
    data["answer"]["lane_at_position"] = [0]
    data["answer"]["plans"][0]["nodes"].pop()
    data["answer"]["roles"][0]["lanes"][0]["quotes"] = [quote("x" * 9, "xx") | {"end": 9000}]
    shown = view(config, data)
    assert shown.failures
    render_page(shown)
    render(Console(file=StringIO()), shown)


def test_the_terminal_shows_the_same(config: PdtConfig) -> None:
    output = StringIO()
    render(Console(file=output, width=160), view(config))
    text = output.getvalue()
    for words in ("Siege of Vell", "lane 2", "read 1.", "all 44 rules hold", "d2", "5 → 12"):
        assert words in text


def test_page_parts_are_packaged() -> None:
    folder = Path(__file__).parents[2] / "src" / "pdt" / "records" / "show"
    assert {path.name for path in folder.glob("page.*")} == {"page.css", "page.js"}
