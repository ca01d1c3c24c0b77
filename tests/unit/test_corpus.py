"""Shards: the same bytes always, whole or not there, and nothing lost when a compile is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, ContractBroken, CorruptFile, UsageError
from pdt.provenance import check_manifest
from pdt.records.corpus import compile_corpus
from pdt.records.inputs import input_digests
from pdt.records.shards import Shard, arrow_schema
from tests.support.record_samples import sample, sample_config, train_tokenizer, write_documents


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> PdtConfig:
    return sample_config(train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json"))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_two_compiles_of_the_same_input_are_byte_identical(
    config: PdtConfig, tmp_path: Path
) -> None:
    source = write_documents(tmp_path / "in.jsonl", 20)
    compile_corpus([source], tmp_path / "a", config)
    compile_corpus([source], tmp_path / "b", config)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_the_bytes_do_not_depend_on_the_number_of_processes(
    config: PdtConfig, tmp_path: Path
) -> None:
    source = write_documents(tmp_path / "in.jsonl", 30)
    compile_corpus([source], tmp_path / "one", config)
    compile_corpus([source], tmp_path / "two", config, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_resumed_compile_redoes_only_what_is_missing(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 30)
    out = tmp_path / "out"
    compile_corpus([source], out, config)
    whole = contents(out)
    for name in ("manifest.json", "corpus.json", "shard-00002.json"):
        (out / name).unlink()
    (out / ".shard-00003.parquet.x.partial").write_bytes(b"half")
    kept = (out / "shard-00001.parquet").stat().st_mtime_ns
    compile_corpus([source], out, config, resume=True)
    assert contents(out) == whole
    assert (out / "shard-00001.parquet").stat().st_mtime_ns == kept


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_compile_resumes_to_the_same_bytes(
    config: PdtConfig, tmp_path: Path, workers: int
) -> None:
    source = write_documents(tmp_path / "in.jsonl", 400)
    compile_corpus([source], tmp_path / "whole", config)
    out = tmp_path / "killed"
    script = tmp_path / "compile.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom pdt.config import PdtConfig\n"
        "from pdt.records.corpus import compile_corpus\n"
        "if __name__ == '__main__':\n"
        "    config = PdtConfig.model_validate_json(sys.argv[3])\n"
        "    source, out, workers = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[4])\n"
        "    compile_corpus([source], out, config, workers=workers)\n"
    )
    given = (script, source, out, config.model_dump_json(), workers)
    command = [sys.executable, *map(str, given)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not (out / "shard-00002.json").exists():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)  # its workers hold this pipe too: they all end
    assert not (out / "manifest.json").exists()
    compile_corpus([source], out, config, resume=True)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_damaged_shard_is_made_again(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 20)
    compile_corpus([source], tmp_path / "out", config)
    whole = contents(tmp_path / "out")
    shard = tmp_path / "out" / "shard-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-50])
    compile_corpus([source], tmp_path / "out", config, resume=True)
    assert contents(tmp_path / "out") == whole


def test_a_corpus_of_other_settings_is_not_resumed(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 3)
    compile_corpus([source], tmp_path / "out", config)
    other = config.model_copy(
        update={"records": config.records.model_copy(update={"projection_seed": 7})}
    )
    with pytest.raises(BindingMismatch, match="started with other settings"):
        compile_corpus([source], tmp_path / "out", other, resume=True)


@pytest.mark.parametrize("count", [9, 16], ids=["a changed shard", "fewer shards"])
def test_a_changed_input_is_not_resumed(config: PdtConfig, tmp_path: Path, count: int) -> None:
    source = write_documents(tmp_path / "in.jsonl", 24)
    compile_corpus([source], tmp_path / "out", config)
    write_documents(source, count)
    with pytest.raises(BindingMismatch, match="other documents"):
        compile_corpus([source], tmp_path / "out", config, resume=True)


def test_a_directory_with_something_in_it_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 3)
    with pytest.raises(UsageError, match="not empty"):
        compile_corpus([source], tmp_path, config)


def test_rejections_are_counted_by_rule_and_kept_with_their_reasons(
    config: PdtConfig, tmp_path: Path
) -> None:
    def spoil(number: int, data: dict) -> None:  # type: ignore[type-arg]
        if number % 5 == 0:
            data["answer"]["lane_at_position"] = [0, 1, 2]

    source = write_documents(tmp_path / "in.jsonl", 20, edit=spoil)
    report = compile_corpus([source], tmp_path / "out", config)
    assert (report.documents, report.rejected, report.records) == (20, 4, {"train": 16})
    assert report.rejections_by_rule == {"dependency_order": 4}
    kept = json.loads((tmp_path / "out" / "shard-00000.json").read_text())
    (failure,) = kept["rejected"]["vell-0"]
    assert failure["rule"] == "dependency_order"
    assert failure["required"] == "the owner first"


def test_the_manifest_names_every_file_and_the_report_what_it_is_bound_to(
    config: PdtConfig, tmp_path: Path
) -> None:
    source = write_documents(tmp_path / "in.jsonl", 20)
    report = compile_corpus([source], tmp_path / "out", config)
    manifest = check_manifest(tmp_path / "out", report.shards)
    assert set(manifest["files"]) == set(contents(tmp_path / "out")) - {"manifest.json"}
    assert manifest["config"]["records"]["shard_records"] == config.records.shard_records
    assert list(manifest["inputs"]) == ["in.jsonl"]
    assert {"tokenizer", "encoder", "projection", "limits"} <= report.binding.keys()


def test_inputs_of_one_name_are_told_apart_in_a_manifest(tmp_path: Path) -> None:
    files = [tmp_path / split / "documents.jsonl" for split in ("train", "validation")]
    for file in files:
        file.parent.mkdir()
        file.write_text(file.parent.name)
    assert list(input_digests(files[:1])) == ["documents.jsonl"]
    both = input_digests(files)
    assert list(both) == ["train/documents.jsonl", "validation/documents.jsonl"]
    assert len(set(both.values())) == 2


def test_a_shard_has_the_explicit_schema(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 3)
    compile_corpus([source], tmp_path / "out", config)
    schema = pq.read_schema(tmp_path / "out" / "shard-00000.parquet")
    assert schema.equals(arrow_schema(), check_metadata=False)
    assert schema.field("role_KUF").metadata[b"axes"] == b"KUF"


def bad_line(tmp_path: Path, edit) -> Path:  # type: ignore[no-untyped-def]
    source = write_documents(tmp_path / "in.jsonl", 3)
    lines = source.read_bytes().split(b"\n")
    lines[1] = edit(lines[1])
    source.write_bytes(b"\n".join(lines))
    return source


@pytest.mark.parametrize("workers", [1, 2])
def test_an_unknown_schema_version_is_refused_with_file_and_line(
    config: PdtConfig, tmp_path: Path, workers: int
) -> None:
    source = bad_line(tmp_path, lambda line: line.replace(b"pdt.document/1", b"pdt.document/9"))
    with pytest.raises(ContractBroken) as refused:
        compile_corpus([source], tmp_path / "out", config, workers=workers)
    assert "in.jsonl:2" in str(refused.value)
    assert "unknown schema version 'pdt.document/9'; this pdt reads 'pdt.document/1'" in str(
        refused.value
    )


def test_an_unknown_field_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    source = bad_line(
        tmp_path, lambda line: line.replace(b'"category"', b'"colour": 1, "category"')
    )
    with pytest.raises(ContractBroken, match=r"in.jsonl:2 is not a TaughtDocument.\n  colour"):
        compile_corpus([source], tmp_path / "out", config)


def test_bytes_that_are_not_utf8_are_refused(config: PdtConfig, tmp_path: Path) -> None:
    source = bad_line(tmp_path, lambda line: line.replace("é".encode(), b"\xe9"))
    with pytest.raises(ContractBroken, match=r"in.jsonl:2 is not UTF-8: byte \d+ .* 0xe9"):
        compile_corpus([source], tmp_path / "out", config)


def test_half_a_line_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    source = bad_line(tmp_path, lambda line: line[: len(line) // 2])
    with pytest.raises(ContractBroken, match=r"in\.jsonl:2"):
        compile_corpus([source], tmp_path / "out", config)


def test_an_id_that_stands_twice_is_refused_with_both_places(
    config: PdtConfig, tmp_path: Path
) -> None:
    source = write_documents(tmp_path / "in.jsonl", 12)
    with source.open("a") as file:
        file.write(json.dumps(sample("vell-3")) + "\n")
    with pytest.raises(ContractBroken, match=r"'vell-3' stands twice: .*:4 and .*:13"):
        compile_corpus([source], tmp_path / "out", config)


@pytest.mark.paper("Table 1")
def test_a_family_in_two_splits_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    def move(number: int, data: dict) -> None:  # type: ignore[type-arg]
        data["family_key"] = "vell"
        data["split"] = "test" if number == 2 else "train"

    source = write_documents(tmp_path / "in.jsonl", 4, edit=move)
    with pytest.raises(ContractBroken, match="family 'vell' into test, but it is already in train"):
        compile_corpus([source], tmp_path / "out", config)


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_an_empty_file_is_refused(config: PdtConfig, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(data)
    with pytest.raises(ContractBroken, match=r"in.jsonl (is empty|hold no document)"):
        compile_corpus([tmp_path / "in.jsonl"], tmp_path / "out", config)


def test_another_tokenizer_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    source = write_documents(tmp_path / "in.jsonl", 1)
    tokenizer = config.records.tokenizer.model_copy(update={"sha256": "00" * 32})
    other = config.model_copy(
        update={"records": config.records.model_copy(update={"tokenizer": tokenizer})}
    )
    with pytest.raises(BindingMismatch, match="not the student's tokenizer"):
        compile_corpus([source], tmp_path / "out", other)


def test_a_truncated_shard_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    compile_corpus([write_documents(tmp_path / "in.jsonl", 3)], tmp_path / "out", config)
    shard = tmp_path / "out" / "shard-00000.parquet"
    shard.write_bytes(shard.read_bytes()[:200])
    with pytest.raises(CorruptFile, match="cannot be read as Parquet"):
        Shard(shard)


def test_a_shard_of_another_version_is_refused(config: PdtConfig, tmp_path: Path) -> None:
    compile_corpus([write_documents(tmp_path / "in.jsonl", 3)], tmp_path / "out", config)
    shard = tmp_path / "out" / "shard-00000.parquet"
    table = pq.read_table(shard)
    footer = {**table.schema.metadata, b"pdt.schema_version": b"pdt.record/7"}
    pq.write_table(table.replace_schema_metadata(footer), shard)
    with pytest.raises(ContractBroken, match=r"schema version 'pdt\.record/7'"):
        Shard(shard)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_documents(
    config: PdtConfig, tmp_path: Path
) -> None:
    """In a process of its own: after the first shards, a thousand documents add next to none."""
    source = write_documents(tmp_path / "in.jsonl", 1200)
    script = (
        "import resource, sys; from pathlib import Path; from pdt.config import PdtConfig\n"
        "from pdt.records.corpus import compile_corpus\n"
        "config, peaks = PdtConfig.model_validate_json(sys.argv[3]), []\n"
        "def note(report):\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
        "compile_corpus([Path(sys.argv[1])], Path(sys.argv[2]), config, progress=note)\n"
        "print(peaks[24], peaks[-1])\n"
    )
    given = (source, tmp_path / "out", config.model_dump_json())
    command = [sys.executable, "-c", script, *map(str, given)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    early, late = map(int, run.stdout.split())
    assert late - early < 12, f"{early} MB after 200 documents, {late} MB after 1,200"
