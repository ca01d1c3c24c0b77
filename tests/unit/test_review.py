"""Human inspection: a log that only grows, and a pilot that nobody can seal too early."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.cli import app
from pdt.config import PdtConfig, load_config
from pdt.errors import ContractBroken, CorruptFile, PdtError, UsageError
from pdt.records.pilot import pilot_problems, seal_pilot
from pdt.records.review import ReviewLog
from pdt.teacher.document import TaughtDocument
from pdt.terms import Inspection, Split

ACCEPTED, REJECTED = Inspection.ACCEPTED, Inspection.REJECTED


def balanced(each: int) -> list[TaughtDocument]:
    """`each` Chronicle documents of every one of the eight categories."""
    chronicle = Chronicle(9, Split.TRAIN, turn_dials("nano"), nano_meter())
    found: dict[str, list[TaughtDocument]] = {}
    for index in range(400):
        document = chronicle.document(index).taught
        mine = found.setdefault(document.category, [])
        if len(mine) < each:
            mine.append(document)
        if len(found) == 8 and all(len(group) == each for group in found.values()):
            break
    return [document for group in found.values() for document in group]


def pilot_of(records: int) -> PdtConfig:
    return load_config("nano", overrides=[f"records.pilot.records={records}"])


@pytest.mark.paper("§4.3")
def test_the_pilot_is_128_records_over_eight_categories() -> None:
    pilot = load_config("canonical").records.pilot
    assert (pilot.records, pilot.categories) == (128, 8)


def test_a_review_is_kept_with_who_what_when_and_why(tmp_path: Path) -> None:
    document = balanced(1)[0]
    log = ReviewLog(tmp_path / "reviews.jsonl")
    log.add(document, ACCEPTED, reviewer="Ada", reason="owners are clear")
    log.add(document, REJECTED, reviewer="Ben", reason="lane 2 repeats f3")
    again = ReviewLog(log.path)
    assert [(r.reviewer, r.verdict) for r in again.reviews] == [
        ("Ada", ACCEPTED),
        ("Ben", REJECTED),
    ]
    latest = again.of(document)
    assert latest is not None and latest.reason == "lane 2 repeats f3"


def test_a_changed_record_needs_a_new_review(tmp_path: Path) -> None:
    document = balanced(1)[0]
    log = ReviewLog(tmp_path / "reviews.jsonl")
    log.add(document, ACCEPTED, reviewer="Ada", reason="good")
    answer = document.answer.model_copy(update={"request": "Another request?"})
    changed = document.model_copy(update={"answer": answer})
    assert log.of(changed) is None and log.changed(changed)
    assert pilot_problems([changed], log, pilot_of(8).records.pilot)[-1] == (
        f"record {changed.record_id} has changed since it was inspected"
    )
    log.add(changed, ACCEPTED, reviewer="Ada", reason="still good")
    assert log.of(changed) is not None and log.of(document) is not None


@pytest.mark.parametrize("edit", ["change", "drop", "swap"])
def test_a_log_that_was_edited_is_refused(tmp_path: Path, edit: str) -> None:
    log = ReviewLog(tmp_path / "reviews.jsonl")
    for document in balanced(1)[:3]:
        log.add(document, REJECTED, reviewer="Ada", reason="leaks")
    lines = log.path.read_bytes().splitlines(keepends=True)
    if edit == "change":
        lines[0] = lines[0].replace(b"rejected", b"accepted")
    elif edit == "drop":
        del lines[1]
    else:
        lines[0], lines[1] = lines[1], lines[0]
    log.path.write_bytes(b"".join(lines))
    with pytest.raises(CorruptFile, match="does not follow the line before"):
        ReviewLog(log.path)


@pytest.mark.paper("§4.3")
def test_a_pilot_cannot_be_sealed_with_an_uninspected_or_rejected_record(tmp_path: Path) -> None:
    documents = balanced(2)
    log = ReviewLog(tmp_path / "reviews.jsonl")
    for document in documents[:-2]:
        log.add(document, ACCEPTED, reviewer="Ada", reason="read whole")
    log.add(documents[-2], REJECTED, reviewer="Ada", reason="lane 1 leaks f2")
    out = tmp_path / "pilot"
    with pytest.raises(ContractBroken) as refused:
        seal_pilot(documents, log, pilot_of(16), out)
    assert f"record {documents[-1].record_id} is uninspected" in str(refused.value)
    assert f"record {documents[-2].record_id} was rejected by Ada" in str(refused.value)
    assert not out.exists()
    for document in documents[-2:]:
        log.add(document, ACCEPTED, reviewer="Ben", reason="repaired or fine")
    pilot = seal_pilot(documents, log, pilot_of(16), out)
    assert len(pilot.records) == 16 and set(pilot.categories.values()) == {2}
    assert sorted(path.name for path in out.iterdir()) == [
        "documents.jsonl", "manifest.json", "pilot.json", "reviews.jsonl",
    ]  # fmt: skip


@pytest.mark.paper("§4.3")
def test_a_pilot_cannot_be_sealed_out_of_balance_or_with_a_broken_rule(tmp_path: Path) -> None:
    documents = balanced(3)
    log = ReviewLog(tmp_path / "reviews.jsonl")
    for document in documents:
        log.add(document, ACCEPTED, reviewer="Ada", reason="read whole")
    uneven = [*documents[:6], *documents[7::3], *documents[8::3]][:16]
    problems = pilot_problems(uneven, log, pilot_of(16).records.pilot)
    assert problems and all("category" in problem for problem in problems)
    seven = [document for document in documents if document.category != documents[0].category]
    problems = pilot_problems(seven[:16], log, pilot_of(16).records.pilot)
    assert any("categories" in problem and "required: 8" in problem for problem in problems)
    assert pilot_problems(documents, log, pilot_of(16).records.pilot)[0] == (
        "24 records; required: 16"
    )
    short = load_config("nano", overrides=[
        "records.pilot.records=24", "records.limits.section_tokens.max=65",
    ])  # fmt: skip
    with pytest.raises(ContractBroken, match="breaks section_tokens"):
        seal_pilot(documents, log, short, tmp_path / "pilot")


def test_reviewing_and_sealing_from_the_command_line(tmp_path: Path) -> None:
    documents = balanced(1)
    source, log = tmp_path / "documents.jsonl", tmp_path / "reviews.jsonl"
    source.write_text("".join(document.model_dump_json() + "\n" for document in documents))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["record", *arguments])
        if isinstance(result.exception, PdtError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    shared = [str(source), "--reviews", str(log)]
    assert "8 to inspect, the next is" in run("review", *shared)
    named = ["--reviewer", "Ada", "--reason", "read"]
    with pytest.raises(UsageError, match="holds no record 'x'"):
        run("review", *shared, "--id", "x", "--verdict", "accepted", *named)
    with pytest.raises(UsageError, match="needs a person and a reason"):
        run("review", *shared, "--id", documents[0].record_id, "--verdict", "accepted")
    for document in documents:
        run("review", *shared, "--id", document.record_id, "--verdict", "accepted", *named)
    state = json.loads(run("review", *shared, "--json"))
    assert state["waiting"] == [] and len(state["categories"]) == 8
    sealing = ["seal", *shared, "--out", str(tmp_path / "p"), "--preset", "nano"]
    with pytest.raises(ContractBroken, match="8 records; required: 128"):
        run(*sealing)
    assert "8 records sealed" in run(*sealing, "--set", "records.pilot.records=8")
