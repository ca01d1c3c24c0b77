"""The four curated records keep the whole contract at canonical size."""

import re
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from pdt.chronicle.dice import dice
from pdt.config import load_config
from pdt.errors import UsageError
from pdt.records.align import tokenize_document
from pdt.records.checks import check_document
from pdt.records.compile import Compiler
from pdt.records.curated import CuratedRecord, curated_names, read_curated
from pdt.records.curated.read import unmark
from pdt.records.review import ReviewLog
from pdt.records.schema import TrainingRecord
from pdt.sources.bundle import read_bundle, write_bundle
from pdt.teacher.checks import check_text
from pdt.terms import Alteration, FactRole, Inspection, SourceOrigin
from pdt.tokenizer import load_tokenizer
from tests.support.weights import needs_qwen

REAL = "challenger-expedition"
CANONICAL = load_config("canonical")


@pytest.fixture(params=curated_names())
def record(request: pytest.FixtureRequest) -> CuratedRecord:
    return read_curated(request.param)


@pytest.mark.paper("§4.3")
def test_there_are_four_with_many_few_and_no_dependencies() -> None:
    links = {name: read_curated(name).taught.answer.dependencies for name in curated_names()}
    assert sorted(len(found) for found in links.values()) == [0, 1, 2, 4]


@needs_qwen
@pytest.mark.paper("§4.2", "Table 1")
def test_every_rule_holds_with_the_real_tokenizer(record: CuratedRecord) -> None:
    tokenizer = load_tokenizer(CANONICAL.records.tokenizer)
    assert [str(f) for f in check_document(record.taught, CANONICAL, tokenizer)] == []
    tokens = tokenize_document(record.taught, CANONICAL, tokenizer)
    assert all(700 <= len(lane.starts) <= 1000 for lane in tokens.lanes)


@pytest.mark.paper("§4.2")
def test_every_text_rule_holds(record: CuratedRecord) -> None:
    assert [
        str(f) for f in check_text(record.taught, CANONICAL.records.limits, lanes=3).found
    ] == []


@pytest.mark.paper("Table 1")
def test_the_sources_are_cited_like_the_articles_the_paper_asks_for(record: CuratedRecord) -> None:
    article = record.taught.article
    marks = Counter(name for _, p in article.paragraphs() for name in p.citation_ids)
    assert sum(marks.values()) >= 30
    assert len(marks) >= 15
    assert max(marks.values()) <= 0.25 * sum(marks.values())
    cited = [bool(paragraph.citation_ids) for _, paragraph in article.paragraphs()]
    assert sum(cited) >= 0.70 * len(cited)
    assert len(article.sections) >= 6


@pytest.mark.paper("§7.2")
def test_the_sections_are_prose_and_not_notes(record: CuratedRecord) -> None:
    for section in record.taught.answer.sections:
        sentences = [
            sentence
            for paragraph in section.paragraphs
            for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", paragraph)
        ]
        short = sum(len(sentence.split()) < 8 for sentence in sentences)
        assert short <= 0.1 * len(sentences)
        assert len(set(sentences)) == len(sentences)


def test_every_kind_of_alteration_and_role_is_exercised() -> None:
    records = [read_curated(name).taught for name in curated_names()]
    altered = {fact.hard_negative.alters for r in records for fact in r.inventory.facts}
    roles = {lane.role for r in records for entry in r.answer.roles for lane in entry.lanes}
    assert altered == set(Alteration)
    assert roles == set(FactRole)


def test_what_is_coined_was_drawn_and_not_picked() -> None:
    """The dice of the record's name choose among the alternatives, whatever the author likes."""
    drawn = 0
    for name in curated_names():
        for dependency in read_curated(name).taught.answer.dependencies:
            if choice := dependency.coined:
                options = choice.alternatives
                throw = dice("curated", name, choice.choice_id).randrange(len(options))
                assert options[throw] == choice.text
                drawn += 1
    assert drawn == 4


def test_a_curated_source_is_a_bundle_that_says_who_made_it(
    record: CuratedRecord, tmp_path: Path
) -> None:
    bundle = read_bundle(write_bundle(tmp_path, record.source.bundle, record.source.raw))
    assert bundle.origin is SourceOrigin.CURATED
    if record.name == REAL:
        assert bundle.licence.name == "CC BY-SA 3.0"
        assert f"revision {bundle.revision_id}" in bundle.licence.attribution
        assert "contributors" in bundle.licence.attribution
    else:
        assert "invented" in bundle.licence.attribution
    assert record.taught.teacher.settings["fictional"] is (record.name != REAL)
    assert "[^" not in record.taught.article.text


@pytest.mark.paper("§4.3", "§7.4")
def test_the_real_record_was_inspected_as_it_stands() -> None:
    """Whoever edits a word of it has to look at it again."""
    taught = read_curated(REAL).taught
    log = ReviewLog(Path(str(resources.files("pdt.records.curated") / REAL / "reviews.jsonl")))
    review = log.of(taught)
    assert review is not None and review.verdict is Inspection.ACCEPTED
    edited = taught.model_copy(
        update={"answer": taught.answer.model_copy(update={"request": "Another."})}
    )
    assert log.of(edited) is None


def test_marks_become_quotes_where_they_stand() -> None:
    marked = unmark("The [f1|old mill] and the [ref:f2|old mill] again.")
    assert marked.text == "The old mill and the old mill again."
    assert [(key, quote.start, quote.end) for key, quote in marked.marks] == [
        ("f1", 4, 12),
        ("ref:f2", 21, 29),
    ]
    assert all(quote.matches(marked.text) for _, quote in marked.marks)


def test_an_unknown_record_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="keld-lock-stoppage"):
        read_curated("nothing")


@needs_qwen
@pytest.mark.paper("§4.3")
def test_every_record_compiles_with_the_real_tokenizer(record: CuratedRecord) -> None:
    """BGE is not needed to see that labels, routing and edges come out."""
    config = load_config(
        "canonical", overrides=["records.encoder.kind=hashed", "records.encoder.name=hashed-ngrams"]
    )
    compiled = Compiler.load(config).compile(record.taught)
    assert isinstance(compiled, TrainingRecord), compiled
    assert compiled.record_id == record.taught.record_id
