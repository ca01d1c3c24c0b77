"""From a seed to compiled records, as a user would do it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from pdt.cli import app
from pdt.sources.bundle import read_bundle
from pdt.study.recipe import load_recipe
from pdt.teacher.document import TaughtDocument

run = CliRunner()


def test_a_seed_becomes_documents_that_compile(tmp_path: Path) -> None:
    out, shards = tmp_path / "corpus", tmp_path / "records"
    written = run.invoke(
        app,
        ["chronicle", "write", "--count", "20", "--seed", "4", "--out", str(out), "--bundles"],
    )
    assert written.exit_code == 0, written.output
    lines = (out / "documents.jsonl").read_text().splitlines()
    documents = [TaughtDocument.model_validate_json(line) for line in lines]
    assert len({document.record_id for document in documents}) == 20
    bundles = [read_bundle(path) for path in (out / "bundles").iterdir()]
    assert {b.bundle_id for b in bundles} == {d.article.bundle_id for d in documents}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["config"]["dials"]["size"] == "nano"

    checked = run.invoke(app, ["record", "check", str(out)])
    assert checked.exit_code == 0, checked.output
    compiled = run.invoke(app, ["record", "compile", str(out), "--out", str(shards), "--json"])
    assert compiled.exit_code == 0, compiled.output


def test_two_writes_of_one_seed_are_byte_identical(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run.invoke(app, ["chronicle", "write", "--count", "8", "--out", str(tmp_path / name)])
    first, second = (tmp_path / name / "documents.jsonl" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_document_can_be_read_in_the_terminal() -> None:
    shown = run.invoke(
        app, ["chronicle", "show", "3", "--set", "coined_share=1", "--set", "ordinary_share=0"]
    )
    assert shown.exit_code == 0, shown.output
    assert ">>> " in shown.output
    assert shown.output.count("--- lane") == 3
    assert "bits)" in shown.output


def test_a_studys_corpus_is_written_by_the_studys_name(tmp_path: Path) -> None:
    test = load_recipe("nano").corpora["test"]
    by_hand = ["--seed", str(test.seed), *(part for dial in test.dials for part in ("--set", dial))]
    for name, options in (("named", ["--study", "nano"]), ("by-hand", by_hand)):
        common = ["--split", "test", "--count", "3", "--out", str(tmp_path / name)]
        written = run.invoke(app, ["chronicle", "write", *common, *options])
        assert written.exit_code == 0, written.output
    first, second = (tmp_path / name / "documents.jsonl" for name in ("named", "by-hand"))
    assert first.read_bytes() == second.read_bytes()


def test_a_studys_name_leaves_no_dial_open() -> None:
    for wrong, said in (
        (["--study", "nano", "--set", "coins=1"], "Leave out --size and --set"),
        (["--study", "none"], "Studies: digest, nano, nano-2, nano-quick"),
        (["--study", "nano-quick", "--split", "validation"], "has no validation corpus"),
    ):
        refused = run.invoke(app, ["chronicle", "show", *wrong])
        assert refused.exit_code != 0 and said in str(refused.exception)
