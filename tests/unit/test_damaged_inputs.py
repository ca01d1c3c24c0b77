"""Damaged inputs are read or refused: only the project's own errors come out, and soon."""

import json
from pathlib import Path

import pytest
from tools.fuzz.run import run
from tools.fuzz.targets import TARGETS, sign

import pdt
from pdt.config import load_config
from pdt.errors import ConfigError, CorruptFile, PdtError, UsageError
from pdt.generation.settings import settings_from
from pdt.parse import NotParsed, parse_json, parse_yaml
from pdt.provenance import new_directory, read_json_object
from pdt.sources.candidates import read_candidates
from tests.conftest import open_model


@pytest.mark.parametrize("target", TARGETS)
def test_a_hundred_damaged_inputs_of_a_kind_are_read_or_refused(target: str) -> None:
    """What `make fuzz` does by the ten thousand."""
    assert run(target, range(100))["failures"] == []


LONG = "7" * 5_000
LONG_HEX = "0x" + "f" * 6_000


@pytest.mark.parametrize(
    "value",
    ["2001-99-99", "2026-02-31", "[" * 2_000, LONG, LONG_HEX, "\udcff", "!!int ''", "&a [*a]"],
)
def test_a_value_that_no_config_can_have_is_a_usage_error(value: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lanes") as refused:
        load_config("tiny", overrides=[f"lanes.count={value}"])
    assert "set_int_max_str_digits" not in str(refused.value)  # Python's own remedy is none here
    with pytest.raises(UsageError):
        settings_from([f"max_tokens={value}"])
    file = tmp_path / "config.yaml"
    file.write_bytes(f"extends: tiny\nlanes: {{count: {value}}}\n".encode(errors="surrogatepass"))
    with pytest.raises(ConfigError, match="config"):
        load_config(file=file)


@pytest.mark.parametrize("name", ["5", "[]", "false", "nowhere"])
def test_a_file_that_extends_no_preset_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"extends: {name}\n")
    with pytest.raises(UsageError, match="preset"):
        load_config(file=tmp_path / "config.yaml")


def test_an_impossible_date_of_a_review_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- {title: Vell, reviewed_on: 2026-02-31}\n")
    with pytest.raises(UsageError, match="not YAML: a value is impossible: day is out of range"):
        read_candidates(tmp_path / "list.yaml")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, LONG, '"\\ud800"', '{"a": "\\udc00"}', "{", b"\xff"], ids=range(6)
)
def test_json_that_no_file_should_hold_is_one_error(text: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(NotParsed):
        parse_json(text)
    (tmp_path / "x.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CorruptFile):
        read_json_object(tmp_path / "x.json")


def test_whole_surrogate_pairs_and_plain_values_are_read() -> None:
    assert parse_json('["\\ud83e\\uddc2", 1.5, null]') == ["🧂", 1.5, None]
    assert parse_yaml("{a: [1, 2.5, x], b: 2026-02-28}")["a"] == [1, 2.5, "x"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    pdt.save_model(open_model(), tmp_path / "model", with_trunk=True)
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("config", "trunk", "shape", "vocabulary"), 10**8, "embed_tokens"),
        (("config", "planner", "layers"), 10**9, "planner.layers"),
        (("config", "trunk", "shape", "width"), 2**50, "does not hold the tensors"),
        (("config", "lanes", "count"), 2, "stored"),
        (("trunk",), None, "which trunk"),
        (("trunk", "source"), 5, "which trunk"),
        (("trunk", "source"), "x" * 400, "another trunk|is no file|does not hold"),
    ],
)
def test_a_signed_model_of_other_sizes_is_refused_before_memory_is_taken(
    saved: Path, path: tuple[str, ...], value: object, why: str
) -> None:
    tree = json.loads((saved / "config.json").read_text())
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    if path == ("trunk", "source") and isinstance(value, str):
        (saved / "trunk.safetensors").unlink()
        manifest = json.loads((saved / "manifest.json").read_text())
        del manifest["files"]["trunk.safetensors"]
        (saved / "manifest.json").write_text(json.dumps(manifest))
    (saved / "config.json").write_text(json.dumps(tree))
    sign(saved, "config.json")
    with pytest.raises(PdtError, match=why):
        pdt.load_model(saved)


def test_a_manifest_that_names_a_file_outside_is_refused(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    for name in ("../model/config.json", "x" * 400):
        files = manifest["files"] | {name: {"bytes": 1, "sha256": "0"}}
        (saved / "manifest.json").write_text(json.dumps(manifest | {"files": files}))
        with pytest.raises(CorruptFile, match="is missing"):
            pdt.load_model(saved)


def test_of_two_that_make_one_directory_neither_loses_its_work(tmp_path: Path) -> None:
    def both() -> None:
        with new_directory(tmp_path / "out") as slow:
            (slow / "file").write_text("slow")
            with new_directory(tmp_path / "out") as quick:
                (quick / "file").write_text("quick")

    with pytest.raises(UsageError, match="What was made here is in") as refusal:
        both()
    assert (tmp_path / "out/file").read_text() == "quick"
    (kept,) = [path for path in tmp_path.iterdir() if path.name != "out"]
    assert (kept / "file").read_text() == "slow"
    assert str(kept) in str(refusal.value)
