"""The machine's best way to multiply: measured once, kept, and never by a test's own machine."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from pdt.cli import app
from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.model.build import random_model
from pdt.model.kernels import matmul
from pdt.model.kernels.matmul import Measured, ShapeFigures, Way
from pdt.records.batch import RecordShards
from pdt.training.loop import Trainer
from pdt.training.trunk_cache import TrunkCache
from tests.support.training_samples import corpus

Program = Callable[[str], None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A machine that has measured nothing; the call says what its probe does instead."""
    monkeypatch.delenv("PDT_MATMUL")
    monkeypatch.setenv("PDT_CACHE", str(tmp_path))
    matmul.measured.cache_clear()

    def probe(script: str) -> None:
        program = tmp_path / "probe"
        program.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/runs\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))

    yield probe
    matmul.measured.cache_clear()
    matmul.use_way(Way.DEFAULT)


def figures(speed: float, error: float) -> str:
    """A probe's output: the default runs 100 GFLOP/s with an error of 1e-6."""
    shape = ShapeFigures("a product", 100.0, 1e-6, 100.0 * speed, 1e-6 * error)
    return f"echo '{json.dumps([shape.__dict__])}'"


@pytest.mark.parametrize(
    ("speed", "error", "way"),
    [
        (2.5, 2.0, Way.ONEDNN),
        (2.5, 5.0, Way.DEFAULT),
        (1.3, 1.0, Way.DEFAULT),
        (0.5, 1.0, Way.DEFAULT),
    ],
)
def test_the_fastest_way_that_is_exact_to_fp32_is_used(
    machine: Program, speed: float, error: float, way: Way
) -> None:
    machine(figures(speed, error))
    assert matmul.use_best_way(torch.device("cpu")) is way
    medium = torch.get_float32_matmul_precision() == "medium"
    assert medium == (way is Way.ONEDNN)
    assert matmul.use_best_way(torch.device("meta")) is Way.DEFAULT


def test_a_machine_is_measured_once(machine: Program, tmp_path: Path) -> None:
    machine(figures(2.5, 1.0))
    for _ in range(2):
        assert matmul.best_way() is Way.ONEDNN
        matmul.measured.cache_clear()  # as another process
    machine(figures(0.5, 1.0))
    assert matmul.best_way() is Way.ONEDNN
    assert (tmp_path / "runs").read_text().split() == ["ran"]
    (kept,) = (tmp_path / "matmul").iterdir()
    assert json.loads(kept.read_text())["machine"] == matmul.machine()


def test_figures_of_other_instructions_or_a_damaged_file_are_measured_anew(
    machine: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(figures(2.5, 1.0))
    assert matmul.best_way() is Way.ONEDNN
    machine(figures(0.5, 1.0))
    with monkeypatch.context() as patch:
        patch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
        matmul.measured.cache_clear()
        assert matmul.best_way() is Way.DEFAULT
    for kept in (tmp_path / "matmul").iterdir():
        kept.write_text("{")
    matmul.measured.cache_clear()
    assert matmul.best_way() is Way.DEFAULT


def test_bf16_that_traps_is_refused_before_it_ends_the_run(machine: Program) -> None:
    machine("kill -ILL $$")
    with pytest.raises(UsageError, match=r"SIGILL(.|\n)*training\.dtype=float32"):
        matmul.check_bf16()
    assert not matmul.measured(Way.BF16).pays


def test_a_probe_that_fails_leaves_the_default(machine: Program) -> None:
    machine("echo no such thing >&2; exit 3")
    assert matmul.best_way() is Way.DEFAULT
    assert matmul.measured(Way.ONEDNN).problem == "no such thing"


def test_where_no_figures_can_be_kept_the_default_stays(
    machine: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(figures(2.5, 1.0))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "file"))
    assert matmul.best_way() is Way.DEFAULT
    matmul.check_bf16()
    assert not (tmp_path / "runs").exists()


def test_the_environment_chooses_without_measuring(
    machine: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(figures(0.5, 1.0))
    monkeypatch.setenv("PDT_MATMUL", "onednn")
    assert matmul.best_way() is Way.ONEDNN
    monkeypatch.setenv("PDT_MATMUL", "fast")
    with pytest.raises(UsageError, match="Say auto, default, onednn"):
        matmul.best_way()
    assert not (tmp_path / "runs").exists()


def test_the_probe_measures_speed_and_error_of_the_layers_products() -> None:
    found = matmul.measure(Way.ONEDNN)
    assert found.problem is None
    assert len(found.shapes) == 5
    assert found.gain > 0
    assert all(0 < shape.default_error < 1e-5 for shape in found.shapes)


def test_the_bench_prints_every_product_and_what_is_used(machine: Program) -> None:
    machine(figures(2.0, 1.0))
    result = CliRunner().invoke(app, ["bench", "matmul"])
    assert "a product" in result.stdout
    assert "onednn: 2.00× the default's speed, exact to fp32" in result.stdout
    assert "FP32 products use: onednn" in result.stdout
    found = json.loads(CliRunner().invoke(app, ["bench", "matmul", "--json"]).stdout)
    assert found["used"] == "onednn"
    assert [way["way"] for way in found["ways"]] == ["onednn", "bf16"]


def test_a_way_that_did_not_run_is_not_exact() -> None:
    assert not Measured(Way.ONEDNN).exact
    assert not Measured(Way.ONEDNN).pays


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordShards, PdtConfig]:
    return corpus(tmp_path_factory.mktemp("corpus"), documents=2)


@pytest.mark.paper("§6")
def test_a_checkpoint_names_its_products_and_another_way_is_said(
    records: tuple[RecordShards, PdtConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, config = records
    Trainer(random_model(config), shards, tmp_path / "run").train(until=1)
    assert Trainer.resume(shards, tmp_path / "run", config).remark is None
    monkeypatch.setenv("PDT_MATMUL", "onednn")
    try:
        remark = Trainer.resume(shards, tmp_path / "run", config).remark
    finally:
        matmul.use_way(Way.DEFAULT)
    assert remark is not None
    assert "PDT_MATMUL=default keeps the old way" in remark


def test_kept_trunk_states_of_other_products_are_not_read(
    records: tuple[RecordShards, PdtConfig], tmp_path: Path
) -> None:
    model = random_model(records[1])
    bound = TrunkCache(tmp_path, 1 << 20, model)._bound
    matmul.use_way(Way.ONEDNN)
    try:
        assert TrunkCache(tmp_path, 1 << 20, model)._bound != bound
    finally:
        matmul.use_way(Way.DEFAULT)
