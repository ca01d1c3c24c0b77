"""One error that names the path, the value and the remedy."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from pdt.config import load_config, preset_names
from pdt.errors import ConfigError, UsageError
from pdt.terms import NotesCondition


def test_every_preset_is_valid_and_canonical_comes_first() -> None:
    assert preset_names()[0] == "canonical"
    assert set(preset_names()) == {
        "canonical",
        "digest",
        "nano",
        "nano-2",
        "qwen3-14b",
        "smollm2-135m",
        "tiny",
    }
    for name in preset_names():
        assert load_config(name).lanes.count == 3


@pytest.mark.paper("Table 4", "Appendix A")
def test_canonical_is_table_four() -> None:
    config = load_config("canonical")
    assert (config.lanes.fork_layer, config.upper_layers) == (24, 12)
    assert (config.planner.nodes, config.planner.width) == (8, 512)
    assert (config.planner.layers, config.planner.heads) == (2, 8)
    assert config.reads.memory_width == 256
    assert (config.reads.width, config.reads.heads) == (512, 8)
    assert config.lanes.block_tokens == 32
    assert (config.notes.codebooks, config.notes.codes) == (4, 256)
    assert config.notes.window_blocks == 16
    assert config.reads.plan_gate == config.reads.notes_gate == -4.0
    assert config.trunk.source == "Qwen/Qwen3-4B-Instruct-2507"
    assert config.trunk.revision == "cdbee75f17c01a7cc42f958dc650907174af0554"
    assert config.planner.max_prompt_tokens == 16384


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("lanes.cuont=2", ["lanes.cuont", "did you mean count?"]),
        ("lane.count=2", ["lane", "did you mean lanes?"]),
        ("reads.heads=7", ["reads", "512", "7"]),
        ("planner.width=100", ["planner", "100", "8"]),
        ("notes.codebooks=3", ["reads.memory_width 256", "notes.codebooks 3"]),
        ("lanes.fork_layer=36", ["lanes.fork_layer is 36", "choose 1 to 35"]),
        ("lanes.fork_layer=0", ["lanes.fork_layer", "0"]),
        ("lanes.count=7", ["lanes.count", "7"]),
        ("lanes.count=three", ["lanes.count", "'three'"]),
        ("trunk.shape.kv_heads=5", ["trunk.shape", "32", "5"]),
        ("trunk.shape.family=gpt2", ["trunk.shape.family", "gpt2"]),
        ("notes.condition=sometimes", ["notes.condition", "sometimes"]),
        ("trunk.shape.rope.scaling=llama3", ["trunk.shape.rope", "original_positions"]),
        ("reads.plan_gate=.nan", ["reads.plan_gate"]),
    ],
)
def test_a_wrong_value_is_one_error_with_path_value_and_remedy(
    override: str, says: list[str]
) -> None:
    with pytest.raises(ConfigError) as error:
        load_config("canonical", overrides=[override])
    for words in says:
        assert words in str(error.value)


@pytest.mark.parametrize("override", ["lanes.count", "=3", "a..b=1", "lanes.count=[1"])
def test_a_malformed_override_is_a_usage_error(override: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        load_config("tiny", overrides=[override])


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean canonical"):
        load_config("cannonical")


def test_a_file_goes_over_the_preset_and_an_override_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("notes: {condition: self_only, window_blocks: 5}\n")
    config = load_config("tiny", file=path, overrides=["notes.window_blocks=2"])
    assert config.notes.condition is NotesCondition.SELF_ONLY
    assert config.notes.window_blocks == 2


@pytest.mark.parametrize("text", ["- a\n- b\n", "notes: [", "\x00"])
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        load_config("tiny", file=path)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load_config("tiny", file=tmp_path / "none.yaml")


def test_the_tree_is_frozen() -> None:
    with pytest.raises(ValidationError):
        load_config("tiny").lanes.count = 2
