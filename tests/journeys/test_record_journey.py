"""The whole story on the command line: check, compile, look, verify, and what goes wrong."""

import json
from pathlib import Path

import pytest

from tests.support.commands import run_here as pdt
from tests.support.record_samples import sample_config, train_tokenizer, write_documents


@pytest.fixture
def here(tmp_path: Path) -> Path:
    config = sample_config(train_tokenizer(tmp_path / "t.json"))
    (tmp_path / "config.json").write_text(config.model_dump_json())
    write_documents(tmp_path / "in.jsonl", 10)
    return tmp_path


def test_from_documents_to_verified_shards(here: Path) -> None:
    given = ("--config", "config.json")
    checked = pdt("record", "check", "in.jsonl", *given, cwd=here)
    assert (checked.returncode, checked.stdout) == (0, "")
    made = pdt("record", "compile", "in.jsonl", "--out", "out", "--json", *given, cwd=here)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout) == {
        "out": "out",
        "documents": 10,
        "records": {"train": 10},
        "rejected": 0,
        "rejections_by_rule": {},
        "shards": 2,
    }
    assert "a second" in made.stderr
    verified = pdt("record", "verify", "out", cwd=here)
    assert (verified.returncode, verified.stdout) == (0, "")
    assert "10 records derived again, 0 differences" in verified.stderr
    page = pdt("record", "show", "out", "--id", "vell-3", "--html", "page.html", cwd=here)
    assert (page.returncode, page.stdout.strip()) == (0, "page.html")
    assert "vell-3" in (here / "page.html").read_text()
    shown = pdt("record", "show", "in.jsonl", *given, cwd=here)
    assert "Siege of Vell" in shown.stdout


def test_a_second_compile_needs_resume(here: Path) -> None:
    call = ("record", "compile", "in.jsonl", "--out", "out", "--config", "config.json")
    assert pdt(*call, cwd=here).returncode == 0
    refused = pdt(*call, cwd=here)
    assert refused.returncode == 2
    assert "add --resume" in refused.stderr
    assert pdt(*call, "--resume", cwd=here).returncode == 0


def test_broken_rules_are_listed_and_exit_3(here: Path) -> None:
    def spoil(number: int, data: dict) -> None:  # type: ignore[type-arg]
        if number == 4:
            data["answer"]["lane_at_position"] = [0, 1, 2]

    write_documents(here / "in.jsonl", 6, edit=spoil)
    checked = pdt("record", "check", "in.jsonl", "--config", "config.json", cwd=here)
    assert checked.returncode == 3
    (line,) = checked.stdout.splitlines()
    assert line.startswith("in.jsonl:5 vell-4 dependency_order (dependency d2)")


def test_a_hand_edited_shard_is_reported(here: Path) -> None:
    call = ("record", "compile", "in.jsonl", "--out", "out", "--config", "config.json")
    assert pdt(*call, cwd=here).returncode == 0
    shard = here / "out" / "shard-00000.parquet"
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 0xFF
    shard.write_bytes(data)
    verified = pdt("record", "verify", "out", cwd=here)
    assert verified.returncode == 3
    assert "shard-00000.parquet" in verified.stdout
    assert "Traceback" not in verified.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("compile", "none.jsonl", "--out", "o"), 2, "none.jsonl does not exist"),
        (("verify", "."), 3, "manifest.json is missing"),
        (("schema", "Nothing"), 2, "There is no contract 'Nothing'"),
        (("show", "in.jsonl", "--id", "zzz", "--config", "config.json"), 2, "no record 'zzz'"),
        (("check", "empty.jsonl", "--config", "config.json"), 3, "empty.jsonl is empty"),
    ],
)
def test_refusals_have_a_remedy_and_no_traceback(
    here: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (here / "empty.jsonl").touch()
    refused = pdt("record", *arguments, cwd=here)
    assert refused.returncode == code
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_schemas_are_printed(here: Path) -> None:
    names = pdt("record", "schema", cwd=here).stdout.split()
    assert {"SourceBundle", "Article", "FactInventory", "Answer", "TrainingRecord"} <= set(names)
    schema = json.loads(pdt("record", "schema", "Answer", cwd=here).stdout)
    assert schema["additionalProperties"] is False
