"""Schemas are strict, versioned, exported and documented, and the page has not drifted."""

from pathlib import Path

import pytest

from pdt.contract import parse_contract
from pdt.errors import ContractBroken
from pdt.records.contracts import CONTRACTS, contract_page, json_schema
from pdt.records.schema import TrainingRecord
from pdt.teacher.document import TaughtDocument
from tests.support.record_samples import sample, sample_compiler, train_tokenizer

DOCS = Path(__file__).parents[2] / "docs"


def test_the_data_contract_page_has_not_drifted() -> None:
    written = (DOCS / "data-contract.md").read_text(encoding="utf-8")
    assert written == contract_page(), "run `python tools/data_contract.py`"


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_field_of_every_contract_is_described(name: str) -> None:
    schema = json_schema(name)
    for shape in [schema, *schema.get("$defs", {}).values()]:
        if shape.get("type") == "object":
            assert shape["additionalProperties"] is False
            for field, described in shape["properties"].items():
                assert described.get("description"), f"{shape['title']}.{field}"


@pytest.mark.parametrize("path", ["", "article", "inventory", "answer", "teacher"])
def test_a_field_it_does_not_know_is_refused(path: str) -> None:
    data = sample()
    (data[path] if path else data)["colour"] = "red"
    with pytest.raises(ContractBroken, match="colour: Extra inputs are not permitted"):
        parse_contract(TaughtDocument, data, where="here")


def test_a_document_survives_json() -> None:
    made = TaughtDocument.model_validate(sample())
    assert TaughtDocument.model_validate_json(made.model_dump_json()) == made


def test_a_record_survives_json(tmp_path: Path) -> None:
    compiler = sample_compiler(train_tokenizer(tmp_path / "t.json"))
    record = compiler.compile(TaughtDocument.model_validate(sample()))
    assert isinstance(record, TrainingRecord)
    again = TrainingRecord.model_validate_json(record.model_dump_json())
    assert again.model_dump_json() == record.model_dump_json()


def test_many_mistakes_are_listed_together() -> None:
    data = sample()
    data["split"] = "dev"
    data["record_id"] = "has space"
    del data["teacher"]
    with pytest.raises(ContractBroken) as refused:
        parse_contract(TaughtDocument, data, where="file.jsonl:7")
    lines = str(refused.value).splitlines()
    assert lines[0] == "file.jsonl:7 is not a TaughtDocument."
    assert {line.split(":")[0].strip() for line in lines[1:-1]} == {"split", "record_id", "teacher"}
    assert "pdt record schema TaughtDocument" in lines[-1]
