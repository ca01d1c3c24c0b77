"""Raw bundles are immutable directories addressed by their content."""

import json
from pathlib import Path
from typing import Any

import pytest

from pdt.errors import CorruptFile
from pdt.sources.article import Article
from pdt.sources.bundle import describe_bundle, read_bundle, write_bundle
from pdt.teacher.checks import check_bundle
from pdt.teacher.document import TaughtDocument
from tests.support.record_samples import sample

RAW = {
    "wikitext": "'''Siege of Vell''' …".encode(),
    "html": b"<p>Siege of <b>Vell</b></p>",
    "assessments": b"{}",
    "citations": b"[]",
}
IDENTITY: dict[str, Any] = {
    "origin": "curated",
    "project": "pdt",
    "page_id": 1,
    "revision_id": 2,
    "title": "Siege of Vell",
    "revised_at": "2026-01-01T00:00:00Z",
    "acquired_at": "2026-01-02T00:00:00Z",
    "licence": {"name": "CC0", "url": "https://example.org/cc0", "attribution": "none"},
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path, describe_bundle(IDENTITY, RAW), RAW)


@pytest.mark.paper("§4.1")
def test_a_bundle_reads_back_as_it_was_written(bundle: Path) -> None:
    assert read_bundle(bundle) == describe_bundle(IDENTITY, RAW)
    assert (bundle / "wikitext.txt").read_bytes() == RAW["wikitext"]


def test_the_same_bytes_have_the_same_address(bundle: Path, tmp_path: Path) -> None:
    assert write_bundle(tmp_path, describe_bundle(IDENTITY, RAW), RAW) == bundle
    other = describe_bundle(IDENTITY, {**RAW, "html": b"<p>another</p>"})
    assert other.bundle_id != bundle.name


@pytest.mark.paper("§4.1")
@pytest.mark.parametrize("name", ["wikitext.txt", "citations.json"])
def test_a_changed_raw_file_is_refused(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(b"other bytes")
    with pytest.raises(CorruptFile, match="immutable"):
        read_bundle(bundle)


def test_changed_metadata_is_refused(bundle: Path) -> None:
    path = bundle / "bundle.json"
    path.write_text(path.read_text().replace("CC0", "CC1"))
    with pytest.raises(CorruptFile, match="metadata was changed"):
        read_bundle(bundle)


def test_a_bundle_without_wikitext_is_refused(tmp_path: Path) -> None:
    raw = {role: data for role, data in RAW.items() if role != "wikitext"}
    path = write_bundle(tmp_path, describe_bundle(IDENTITY, raw), raw)
    with pytest.raises(CorruptFile, match="names no wikitext"):
        read_bundle(path)


def article(**changes: Any) -> Article:
    data: dict[str, Any] = {
        "bundle_id": "ab" * 32,
        "title": "Siege",
        "sections": [
            {"path": [], "paragraphs": [{"id": "p1", "text": "Lead.", "citation_ids": ["c1"]}]},
            {"path": ["A"], "paragraphs": []},
            {"path": ["A", "B"], "paragraphs": [{"id": "p2", "text": "Deep."}]},
        ],
        "citations": [{"id": "c1", "cited_work": "w1", "text": "A work."}],
    }
    return Article.model_validate({**data, **changes})


@pytest.mark.paper("§4.1")
def test_the_model_sees_title_headings_and_prose_and_nothing_else() -> None:
    assert article().text == "# Siege\n\nLead.\n\n## A\n\n### B\n\nDeep."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"citations": []}, "unknown citations"),
        ({"sections": [{"path": ["A", "B"], "paragraphs": []}]}, "no heading"),
        ({"title": "two\nlines"}, "line character"),
        ({"title": " space "}, "space at its ends"),
        (
            {"sections": [{"path": [], "paragraphs": [{"id": "p", "text": "x"}] * 2}]},
            "used twice",
        ),
    ],
)
def test_an_article_that_contradicts_itself_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        article(**changes)


@pytest.fixture
def taught(tmp_path: Path) -> tuple[TaughtDocument, Path]:
    """The sample document with its own bundle under `tmp_path`."""
    data = sample()
    raw = {**RAW, "citations": json.dumps(data["article"]["citations"]).encode()}
    bundle = describe_bundle(IDENTITY, raw)
    write_bundle(tmp_path, bundle, raw)
    data["article"]["bundle_id"] = data["inventory"]["bundle_id"] = bundle.bundle_id
    return TaughtDocument.model_validate(data), tmp_path


@pytest.mark.paper("§4.2")
def test_citations_agree_with_the_immutable_source_record(
    taught: tuple[TaughtDocument, Path],
) -> None:
    document, root = taught
    assert check_bundle(document, root) == []
    data = document.model_dump(mode="json")
    data["article"]["citations"][1]["text"] = "Another work."
    (failure,) = check_bundle(TaughtDocument.model_validate(data), root)
    assert failure.rule == "bundle_citations"
    assert "c2" in failure.measured


def test_a_missing_or_changed_bundle_is_a_failure(taught: tuple[TaughtDocument, Path]) -> None:
    document, root = taught
    (root / document.article.bundle_id / "parsoid.html").write_bytes(b"changed")
    assert [f.rule for f in check_bundle(document, root)] == ["bundle_present"]
    assert [f.rule for f in check_bundle(document, root / "none")] == ["bundle_present"]
