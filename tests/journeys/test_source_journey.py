"""From real Wikipedia answers to judged sources, as a user would go."""

import json
import subprocess
from pathlib import Path

import pytest

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import Meter
from pdt.config import load_config
from pdt.sources.bundle import write_bundle
from pdt.sources.harvest import read_judged
from pdt.sources.reading import read_source
from pdt.sources.splits import read_ledger
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tests.support.commands import run_here
from tests.support.weights import needs_qwen
from tests.support.wiki_material import captured_bundles, load_capture, needs_wiki
from tests.support.wiki_server import serve

ROOT = Path(__file__).parents[2]
CANDIDATES = ROOT / "tests" / "data" / "wiki-candidates.yaml"


def pdt(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_here(*arguments, cwd=ROOT)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.paper("§4.1")
def test_the_reader_finds_chronicles_own_article_in_its_html(tmp_path: Path) -> None:
    config = load_config("nano")
    meter = Meter(load_tokenizer(config.records.tokenizer))
    chronicle = Chronicle(0, Split.TRAIN, turn_dials("nano", ()), meter)
    for document in chronicle.documents(5, start=0):
        source = document.source
        directory = write_bundle(tmp_path, source.bundle, source.raw)
        assert read_source(directory, config.sources.html).article == source.article


@needs_wiki
@pytest.mark.paper("§4.1", "Table 1")
@needs_qwen
def test_real_articles_are_fetched_judged_reported_and_shown(tmp_path: Path) -> None:
    wanted = ("Adwa", "Marathon", "Aboukir")
    chosen = [load_capture(d) for d in captured_bundles() if any(w in d.name for w in wanted)]
    out, judged = tmp_path / "fetched", tmp_path / "judged"
    with serve(chosen) as wiki:
        pdt(
            "source", "fetch", CANDIDATES, "--out", out, "--test-server", wiki.url,
            "--contact", "test@example.org", "--set", "sources.fetch.requests_per_second=1000",
        )  # fmt: skip
    assert len(list(out.glob("bundles/*/bundle.json"))) == 3
    shown = pdt("source", "gate", out, "--candidates", CANDIDATES, "--out", judged)
    assert "0 accepted, 3 rejected" in shown.stdout
    _, rejected = read_judged(judged)
    reasons = {one.title: " ".join(one.reasons) for one in rejected}
    assert "coverage" in reasons["Battle of Adwa"] and "maintenance" in reasons["Battle of Adwa"]
    assert "tokens" in reasons["Battle of Marathon"]
    assert "redirect" in reasons["Battle of Aboukir Bay"]
    assert read_ledger(judged / "splits.json").families
    picture, page = tmp_path / "yield.svg", tmp_path / "page.html"
    pdt("source", "report", judged, "--svg", picture)
    assert picture.read_text().startswith("<svg")
    (bundle,) = [
        path.parent
        for path in out.glob("bundles/*/bundle.json")
        if json.loads(path.read_text())["title"] == "Battle of Adwa"
    ]
    pdt("source", "show", bundle, "--candidates", CANDIDATES, "--html", page)
    text = page.read_text()
    assert "Yekatit" in text and "<script" not in text and "http-equiv" in text
    again = pdt("source", "gate", out, "--candidates", CANDIDATES, "--out", judged, code=2)
    assert "not empty" in again.stderr


def test_bad_calls_are_refused_in_one_message(tmp_path: Path) -> None:
    good = CANDIDATES
    bad = tmp_path / "bad.yaml"
    bad.write_text("- title: X\n")
    assert "page_id" in pdt("source", "fetch", bad, "--out", tmp_path / "o", code=3).stderr
    said = pdt("source", "fetch", good, "--out", tmp_path / "o", code=2).stderr
    assert "who is calling" in said and "no contact is given" in said
    assert not (tmp_path / "o").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    said = pdt("source", "fetch", good, "--from", empty, "--out", tmp_path / "o", code=2).stderr
    assert "--out of an earlier" in said and not (tmp_path / "o").exists()
    (empty / "bundles").mkdir()
    said = pdt("source", "fetch", good, "--from", empty, "--out", empty, code=2).stderr
    assert "not empty" in said and "--resume" in said
    missing = tmp_path / "none"
    assert (
        "not a directory" in pdt("source", "gate", missing, "--out", tmp_path / "g", code=2).stderr
    )
    pdt("source", "report", missing, code=3)
    pdt("source", "show", missing, code=3)
