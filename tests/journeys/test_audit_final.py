"""From a verdict to its final rates, and every way to forge them that we could think of."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pdt.audit.adjudicated.verify import verify_final
from pdt.audit.adjudicated.write import MADE_BY as FINAL_MADE_BY
from pdt.audit.adjudicated.write import finish, write_final
from pdt.audit.closing import close_audit
from pdt.audit.directory import MADE_BY
from pdt.audit.opening import AuditAsked, open_audit
from pdt.audit.store.chain import Vote
from pdt.audit.store.database import Database
from pdt.audit.training import Training, read_training
from pdt.cli.audit import show_final
from pdt.errors import AuditRefused, ContractBroken, PdtError, UsageError
from pdt.evaluation.lines.raw import read_raw
from pdt.provenance import MANIFEST, write_json, write_manifest
from tests.support.audits import judge_all, team
from tests.support.evaluations import Ran

Final = tuple[Path, Path, Path]
"""The verdict, the closed audit, the final directory."""


@pytest.fixture(scope="module")
def final(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> Final:
    verdict, room = ran[2], tmp_path_factory.mktemp("audit")
    examples = room / "training.yaml"
    write_json(examples, _three_examples())
    asked = AuditAsked(conditions=("oracle",), documents=2, nodes=2, training=examples)
    open_audit(verdict, str(room / "a.db"), asked)
    database = Database(str(room / "a.db"))
    people = team(database)
    with pytest.raises(AuditRefused, match="not finished"):
        close_audit(database, verdict, room / "early")
    for number, person in enumerate(people):
        judge_all(database, person, slips=0.2 * (number < 2), seed=number)
    close_audit(database, verdict, room / "closed")
    close_audit(database, verdict, room / "again")
    assert (room / "again/votes.jsonl").read_bytes() == (room / "closed/votes.jsonl").read_bytes()
    with pytest.raises(AuditRefused, match="closed"):
        judge_all(database, people[0])
    write_final(room / "final", verdict, room / "closed", finish(verdict, room / "closed"))
    return verdict, room / "closed", room / "final"


def _three_examples() -> list[dict[str, Any]]:
    kept: Training = read_training()
    return [
        {
            "text": "\n\n".join(" ".join(paragraph) for paragraph in one.paragraphs),
            "claims": [
                {
                    "claim": one.words,
                    "answer": str(one.answer),
                    "why": one.why,
                    **({} if one.sentence is None else {"sentence": one.sentence + 1}),
                }
            ],
        }
        for one in kept.examples[:3]
    ]


@pytest.mark.paper("§7.2", "Table 3")
def test_final_rates_verify_and_say_what_they_rest_on(final: Final) -> None:
    found = verify_final(final[2])
    rests = {row.final.gate.measure: row.rests for row in found.adjudicated.gates}
    assert rests["oracle.owner_recall"] == "adjudicated"
    assert rests["planner.zero_drop"] == "screened"
    assert rests["bits.bus.share"] == rests["oracle.longform"] == "measured"
    report = (final[2] / "report.md").read_text()
    assert "| adjudicated |" in report and "κ and α are low" in report
    rows = {row.name: row for row in found.adjudicated.measures}
    recall = rows["oracle.owner_recall"]
    assert recall.adjudicated is not None and recall.adjudicated.documents == 2
    assert recall.screened is not None and recall.screened.documents == 4
    # What people and the screen both say on the same items gives the same rate, unless they differ.
    differ = [d for d in found.differences if d.claim == "statement"]
    if not differ:
        assert recall.sample == recall.adjudicated


def test_the_report_prints_both_and_refuses_an_audit_of_another_verdict(
    final: Final, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    with pytest.raises(typer.Exit):
        show_final(final[0], final[1], None, as_json=True)
    assert json.loads(capsys.readouterr().out)["rates"] == "adjudicated"
    other = Path(shutil.copytree(final[0], tmp_path / "other"))
    manifest = json.loads((other / MANIFEST).read_text())
    write_json(other / MANIFEST, manifest | {"pdt": "0.0.0"})
    with pytest.raises(ContractBroken, match="another verdict"):
        finish(other, final[1])
    with pytest.raises(UsageError, match="not empty"):
        show_final(final[0], final[1], final[1], as_json=True)


def _chained(lines: list[dict[str, Any]], seal: str) -> list[dict[str, Any]]:
    """What a careful forger does: every link fits again."""
    last = seal
    for number, line in enumerate(lines, start=1):
        line["number"], line["previous"] = number, last
        last = Vote.model_validate(line).digest
    return lines


def _turn_a_vote(audit: dict[str, Any], votes: list[dict[str, Any]]) -> None:
    vote = next(v for v in votes if v["purpose"] == "judgment" and v["answer"] == "no")
    vote["answer"] = "cannot tell"


def _drop_the_last(audit: dict[str, Any], votes: list[dict[str, Any]]) -> None:
    votes.pop()


def _settle_ones_own(audit: dict[str, Any], votes: list[dict[str, Any]]) -> None:
    judge = next(v for v in votes if v["purpose"] == "judgment")["person"]
    third = next(v for v in votes if v["purpose"] == "adjudication")
    third["person"] = judge


def _another_sample(audit: dict[str, Any], votes: list[dict[str, Any]]) -> None:
    audit["plan"]["seed"] = 1


def _another_key(audit: dict[str, Any], votes: list[dict[str, Any]]) -> None:
    audit["key"] = "0" * 64


Forgery = Callable[[dict[str, Any], list[dict[str, Any]]], None]


@pytest.mark.paper("§7.2")
@pytest.mark.parametrize("rechained", [False, True])
@pytest.mark.parametrize(
    "forge", [_turn_a_vote, _drop_the_last, _settle_ones_own, _another_sample, _another_key]
)
def test_a_forged_vote_is_found_even_when_every_digest_fits_again(
    final: Final, tmp_path: Path, forge: Forgery, rechained: bool
) -> None:
    copy = Path(shutil.copytree(final[2], tmp_path / "copy"))
    audit = json.loads((copy / "audit/audit.json").read_text())
    votes = [json.loads(line) for line in (copy / "audit/votes.jsonl").read_text().splitlines()]
    forge(audit, votes)
    if rechained:
        votes = _chained(votes, audit["seal"])
        audit |= {"head": Vote.model_validate(votes[-1]).digest, "votes": len(votes)}
    write_json(copy / "audit/audit.json", audit)
    (copy / "audit/votes.jsonl").write_text("".join(json.dumps(v) + "\n" for v in votes))
    manifest = json.loads((copy / "audit" / MANIFEST).read_text())
    write_manifest(
        copy / "audit", made_by=MADE_BY, config=manifest["config"], inputs=manifest["inputs"]
    )
    with pytest.raises(PdtError):
        verify_final(copy)


@pytest.mark.parametrize(
    "name", ["adjudicated.json", "differences.jsonl", "report.md", "report.html", "audit/report.md",
             "audit/judgments.jsonl", "audit/agreement.json", "verdict/results.json"],
)  # fmt: skip
def test_a_changed_file_is_found_even_when_the_manifests_fit_again(
    final: Final, tmp_path: Path, name: str
) -> None:
    copy = Path(shutil.copytree(final[2], tmp_path / "copy"))
    path = copy / name
    path.write_text(path.read_text().replace("0", "1", 1) or "{}\n")
    with pytest.raises(PdtError):
        verify_final(copy)
    if path.parent == copy:
        manifest = json.loads((copy / MANIFEST).read_text())
        write_manifest(copy, made_by=FINAL_MADE_BY, config=None, inputs=manifest["inputs"])
        with pytest.raises(PdtError, match=path.name):
            verify_final(copy)
    (copy / "stranger").write_text("x")
    with pytest.raises(PdtError):
        verify_final(copy)


def test_the_sample_is_what_the_verdict_and_the_seed_give(final: Final) -> None:
    raw = read_raw(final[0])
    audit = json.loads((final[1] / "audit.json").read_text())
    drawn = [row["record_id"] for row in audit["plan"]["documents"]]
    assert len(drawn) == 2 and set(drawn) <= {one.record_id for one in raw.documents}
