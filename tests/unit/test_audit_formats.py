"""Tasks to another tool and votes back from it."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pdt.audit.answers import Answer, Role
from pdt.audit.formats.exchange import FORMATS, export_tasks, import_votes
from pdt.audit.formats.plain import write_csv
from pdt.audit.formats.tasks import Task
from pdt.audit.store.chain import read_votes
from pdt.audit.store.database import Database
from pdt.audit.training import read_training
from pdt.errors import ContractBroken, UsageError
from tests.support.audits import invited, small_audit

Answers = Sequence[tuple[str, str, int | None]]


def jsonl(path: Path, answers: Answers) -> None:
    rows = [{"id": one, "answer": said, "sentence": mark} for one, said, mark in answers]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def in_csv(path: Path, answers: Answers) -> None:
    out = io.StringIO()
    rows = csv.DictWriter(out, ["id", "claim", "answer", "sentence", "remark"])
    rows.writeheader()
    for one, said, mark in answers:
        rows.writerow({"id": one, "answer": said, "sentence": mark, "remark": "a, remark"})
    path.write_text(out.getvalue())


def label_studio(path: Path, answers: Answers) -> None:
    def results(said: str, mark: int | None) -> list[dict[str, object]]:
        found: list[dict[str, object]] = [
            {
                "from_name": "answer",
                "to_name": "claim",
                "type": "choices",
                "value": {"choices": [said]},
            }
        ]
        if mark is not None:
            value = {"number": mark}
            found.append(
                {"from_name": "sentence", "to_name": "claim", "type": "number", "value": value}
            )
        return found

    rows = [
        {
            "id": n,
            "data": {"id": one},
            "annotations": [{"result": results(said, mark), "lead_time": 4.5}],
        }
        for n, (one, said, mark) in enumerate(answers)
    ]
    rows.append({"id": 99, "data": {"id": "left out"}, "annotations": []})
    path.write_text(json.dumps(rows))


WRITERS: dict[str, Callable[[Path, Answers], None]] = {
    "jsonl": jsonl, "csv": in_csv, "label-studio": label_studio,
}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = small_audit(tmp_path / "a.db", 1)
    invited(made, "Ann", Role.ANNOTATOR)
    invited(made, "Bob", Role.ANNOTATOR)
    return made


def exported(database: Database, out: Path, person: str = "Ann") -> list[dict[str, str]]:
    with database.reading() as session:
        export_tasks(session, person, out, "jsonl")
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.paper("§7.2")
@pytest.mark.parametrize("format_", FORMATS)
def test_what_leaves_is_blinded_and_what_comes_back_is_counted(
    database: Database, tmp_path: Path, format_: str
) -> None:
    out = tmp_path / "tasks.out"
    with database.reading() as session:
        count = export_tasks(session, "Ann", out, format_)
    sent = out.read_text()
    for word in ("oracle", "zero", "lane", "hard negative", "statement", '"f1', "r0"):
        assert word not in sent
    assert (tmp_path / "tasks.xml").exists() == (format_ == "label-studio")
    tasks = exported(database, tmp_path / "plain.jsonl")
    assert len(tasks) == count and all(task["id"] in sent for task in tasks)
    back = tmp_path / "back"
    WRITERS[format_](back, [(tasks[0]["id"], "no", None), (tasks[1]["id"], "yes", 1)])
    for counted in ((2, 0), (0, 2)):  # the same file twice
        with database.writing() as session:
            assert import_votes(session, "Ann", back, format_) == counted
    with database.reading() as session:
        votes = read_votes(session)
    assert [(v.ticket, v.answer, v.sentence, v.source) for v in votes] == [
        (tasks[0]["id"], "no", None, format_),
        (tasks[1]["id"], "yes", 0, format_),
    ]


@pytest.mark.parametrize(
    ("answer", "mark", "match"),
    [
        ("perhaps", None, "no answer"),
        ("yes", None, "marks"),
        ("yes", 99, "marks"),
        ("no", 1, "no se"),
    ],
)
def test_one_wrong_vote_and_none_of_the_file_is_counted(
    database: Database, tmp_path: Path, answer: str, mark: int | None, match: str
) -> None:
    tasks = exported(database, tmp_path / "plain.jsonl")
    jsonl(tmp_path / "back", [(tasks[0]["id"], "no", None), (tasks[1]["id"], answer, mark)])
    with pytest.raises(UsageError, match=match), database.writing() as session:
        import_votes(session, "Ann", tmp_path / "back", "jsonl")
    with database.reading() as session:
        assert read_votes(session) == []


def test_another_persons_item_a_forged_one_and_a_changed_mind_are_refused(
    database: Database, tmp_path: Path
) -> None:
    mine = exported(database, tmp_path / "mine")[0]["id"]
    theirs = exported(database, tmp_path / "theirs", "Bob")[0]["id"]
    back = tmp_path / "back"
    for answers, match in (
        ([(theirs, "no", None)], "no item of Ann"),
        ([("0" * 32, "no", None)], "no item of Ann"),
        ([(mine, "no", None), (mine, "no", None)], "twice"),
    ):
        jsonl(back, answers)
        with pytest.raises(UsageError, match=match), database.writing() as session:
            import_votes(session, "Ann", back, "jsonl")
    jsonl(back, [(mine, "no", None)])
    with database.writing() as session:
        import_votes(session, "Ann", back, "jsonl")
    jsonl(back, [(mine, "cannot tell", None)])
    with pytest.raises(UsageError, match="was counted before"), database.writing() as session:
        import_votes(session, "Ann", back, "jsonl")


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("jsonl", "not json\n"), ("jsonl", "[]\n"), ("csv", "a,b\n1,2\n"), ("label-studio", "{}"),
        ("label-studio", '[{"data": {"id": "x"}}]'), ("jsonl", '{"id": "", "answer": "no"}\n'),
        ("label-studio", "nonsense"), ("nonsense", ""),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_with_a_remedy(
    database: Database, tmp_path: Path, format_: str, text: str
) -> None:
    (tmp_path / "back").write_text(text)
    with pytest.raises((UsageError, ContractBroken)), database.writing() as session:
        import_votes(session, "Ann", tmp_path / "back", format_)


def test_files_that_are_not_there_are_refused(database: Database, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a file"), database.writing() as session:
        import_votes(session, "Ann", tmp_path / "nothing", "csv")
    with pytest.raises(UsageError, match="not a file"):
        read_training(tmp_path / "nothing.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "- text: One.\n  claims: [{claim: A., answer: 'yes', why: So.}]",
        "- text: One.\n  claims: [{claim: A., answer: 'no', sentence: 1, why: So.}]",
        "- text: One.\n  claims: [{claim: A., answer: 'yes', sentence: 2, why: So.}]",
        "- text: One.",
        "[]",
        "{",
    ],
)
def test_examples_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "training.yaml").write_text(text)
    with pytest.raises((UsageError, ContractBroken), match=r"training\.yaml"):
        read_training(tmp_path / "training.yaml")


def test_the_packaged_round_has_twenty_examples_of_all_answers() -> None:
    examples = read_training().examples
    assert len(examples) == 20
    assert {example.answer for example in examples} == set(Answer)
    assert read_training().pass_mark == 16


def test_a_cell_that_a_spreadsheet_would_run_becomes_text() -> None:
    task = Task(id="a", claim="=1+1", paragraphs=(("+2", "-3"),))
    rows = list(csv.DictReader(io.StringIO(write_csv([task]))))
    assert rows[0]["claim"] == "'=1+1"
