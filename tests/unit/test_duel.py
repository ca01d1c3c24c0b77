"""The duel's arithmetic and picture; what it measures is no test's business."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from typer.testing import CliRunner

from pdt.bench.duel import (
    LOW_RANK,
    SERIAL,
    SHARED,
    DuelResult,
    SideResult,
    bench_duel,
    bytes_a_round,
)
from pdt.bench.duel_chart import duel_svg
from pdt.bench.peers import LLAMA
from pdt.bench.timing import Timing
from pdt.cli import app
from pdt.config import load_config
from pdt.model.build import random_model
from pdt.model.census import FP32, kv_bytes
from pdt.model.packing import quantise

LANES = f"packed, {LOW_RANK}, 4 bits"


def side(name: str, seconds: float, decode: float | None = None) -> SideResult:
    timing = Timing((seconds,) * 4)
    return SideResult(name, timing, 1000, 10, None if decode is None else Timing((decode,) * 4))


def test_a_goal_is_met_or_missed_by_the_ratio_of_the_same_repeats() -> None:
    sides = (side(LANES, 1.0, decode=0.5), side(LLAMA, 1.9), side(SERIAL, 3.0))
    result = DuelResult(8, 4, 3, 1, sides, 40_000.0, ())
    first, second = result.goals()
    assert "1.90×" in first
    assert "goal 2.0: missed" in first
    assert "3.00×" in second
    assert "goal" not in second
    assert sides[0].over_reading(40_000.0) == pytest.approx(2.0)  # 10,000 bytes take 0.25 s
    assert sides[1].over_reading(40_000.0) is None


def test_every_side_stands_in_the_picture() -> None:
    sides = (side(LANES, 1.0), side("a < b & c", 2.0))
    picture = ElementTree.fromstring(
        duel_svg(DuelResult(8, 4, 3, 1, sides, 1e9, ()), "title & more")
    )
    words = " ".join(text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text"))
    assert "a < b & c" in words
    assert LANES in words


def test_bytes_of_a_round_are_those_of_the_weights_it_reads() -> None:
    model = random_model(load_config("tiny"))
    whole = bytes_a_round(model, 0, 0)
    lanes, fork = model.config.lanes.count, model.config.lanes.fork_layer
    layers, each = model.config.trunk.shape.layers, kv_bytes(model.config, FP32)
    # Below the fork the prompt is read once for all lanes; what they write, once for each.
    assert bytes_a_round(model, 10, 0) - whole == 10 * each * (fork + lanes * (layers - fork))
    assert bytes_a_round(model, 0, 10) - whole == 10 * each * lanes * layers
    assert bytes_a_round(quantise(model, 8), 0, 0) < whole / 2


def test_changes_of_low_rank_beside_blocks_are_read_by_half() -> None:
    def both(rank: int) -> tuple[int, int]:
        model = random_model(
            load_config("tiny", overrides=["lanes.bank=low_rank", f"lanes.rank={rank}"])
        )
        return bytes_a_round(model, 0, 0), bytes_a_round(quantise(model, 8), 0, 0)

    (floats, blocks), (more_floats, more_blocks) = both(2), both(4)
    assert more_floats - floats == 2 * (more_blocks - blocks)


def test_sides_of_every_bank_and_number_run_and_what_is_not_there_is_said() -> None:
    torch.manual_seed(0)
    found = bench_duel(
        "tiny", gguf=None, prompt_tokens=5, lane_tokens=8, repeats=2, only=["4 bits", "fp32, one"]
    )
    names = [one.name for one in found.sides]
    assert {LANES, SERIAL, f"packed, {SHARED}, 4 bits", "packed, full banks, 4 bits"} <= set(names)
    assert all(one.timing.median > 0 for one in found.sides)
    assert any("llama.cpp reads GGUF" in reason for reason in found.missing)


def test_a_missing_file_and_a_picture_that_is_there_are_refused(tmp_path: Path) -> None:
    runner = CliRunner()
    missing = runner.invoke(app, ["bench", "duel", "--gguf", str(tmp_path / "none.gguf")])
    assert "is not a file" in str(missing.exception)
    (tmp_path / "there.svg").write_text("mine")
    there = runner.invoke(app, ["bench", "duel", "tiny", "--svg", str(tmp_path / "there.svg")])
    assert there.exit_code != 0
    assert (tmp_path / "there.svg").read_text() == "mine"


def test_packing_a_tiny_model_changes_what_it_says_of_a_text_a_little(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The Eastport abbey raided the armory at Oldfield.")
    result = CliRunner().invoke(
        app, ["bench", "packing", "nano", str(text), "--tokens", "12", "--json"]
    )
    assert result.exit_code == 0, result.output
    import json

    floats, eight, four = json.loads(result.stdout)
    assert floats["largest_difference"] == 0
    assert 0 < eight["divergence"] < four["divergence"] < 1
    assert eight["megabytes"] < floats["megabytes"] / 3
