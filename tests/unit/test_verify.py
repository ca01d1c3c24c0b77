"""Compile then verify is a fixed point, and any edit is found with its record and field."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, CorruptFile
from pdt.records.batch import RecordShards
from pdt.records.compile import Compiler
from pdt.records.corpus import compile_corpus
from pdt.records.shards import ARRAYS
from pdt.records.verify import verify_corpus
from tests.support.record_samples import sample_config, train_tokenizer, write_documents


@pytest.fixture
def config(tmp_path: Path) -> PdtConfig:
    return sample_config(train_tokenizer(tmp_path / "t.json"))


@pytest.fixture
def corpus(config: PdtConfig, tmp_path: Path) -> Path:
    compile_corpus([write_documents(tmp_path / "in.jsonl", 12)], tmp_path / "out", config)
    return tmp_path / "out"


def edit(shard: Path, column: str, row: int) -> None:
    """Change one value of one record by hand, keeping the file a valid Parquet shard."""
    table = pq.read_table(shard)
    values = table.column(column).to_pylist()
    cell = values[row]
    if isinstance(cell, str):
        values[row] = cell.replace("siege", "party") if column == "document" else cell + "x"
    else:
        first = cell[0]
        cell[0] = (not first) if isinstance(first, bool) else first + type(first)(1)
    place = table.schema.get_field_index(column)
    field = table.schema.field(column)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), shard)


def test_verify_of_a_fresh_compile_finds_nothing(corpus: Path) -> None:
    report = verify_corpus(corpus)
    assert (report.records, report.differences) == (12, ())


@pytest.mark.parametrize("column", [*ARRAYS, "document", "category", "dependency_ids"])
def test_a_value_edited_by_hand_is_found(corpus: Path, column: str) -> None:
    edit(corpus / "shard-00000.parquet", column, 5)
    report = verify_corpus(corpus)
    assert report.differences[0].what == "not the bytes that the manifest names"
    found = {(d.record_id, d.field) for d in report.differences[1:]}
    assert found, column
    assert {record for record, _ in found} <= {"vell-5", None}


def test_a_reader_refuses_a_corpus_that_was_changed(corpus: Path) -> None:
    edit(corpus / "shard-00000.parquet", "owner_lane_F", 5)
    with pytest.raises(CorruptFile, match=r"shard-00000\.parquet"):
        RecordShards(corpus)


def test_a_missing_shard_is_a_difference(corpus: Path) -> None:
    (corpus / "shard-00001.parquet").unlink()
    (difference,) = verify_corpus(corpus).differences
    assert difference.shard == "shard-00001.parquet"


def test_a_corpus_that_never_ended_is_refused(corpus: Path) -> None:
    (corpus / "corpus.json").unlink()
    with pytest.raises(CorruptFile, match=r"not a whole corpus(.|\n)*--resume"):
        RecordShards(corpus)


def test_taught_documents_in_place_of_a_corpus_are_to_be_compiled(tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_text("")
    with pytest.raises(CorruptFile, match="holds taught documents: `pdt record compile"):
        RecordShards(tmp_path)


def test_verify_with_another_tokenizer_is_refused(
    corpus: Path, config: PdtConfig, tmp_path: Path
) -> None:
    other = Compiler.load(sample_config(train_tokenizer(tmp_path / "u.json", size=300)))
    with pytest.raises(BindingMismatch, match="compiled with other settings"):
        verify_corpus(corpus, other)


def test_a_student_with_another_tokenizer_is_refused(corpus: Path) -> None:
    with pytest.raises(BindingMismatch, match="compiled with another tokenizer"):
        RecordShards(corpus).require_tokenizer("00" * 32)


def test_what_is_read_is_what_was_written(corpus: Path) -> None:
    (first, *_) = RecordShards(corpus).rows()
    assert first["record_id"] == "vell-0"
    assert first["role_KUF"].shape[0] == 3
    assert first["node_valid_KN"].dtype == np.bool_
