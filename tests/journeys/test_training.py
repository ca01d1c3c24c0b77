"""A run that is stopped anywhere goes on to the same numbers, and never as another run."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from pdt.cli import app
from pdt.config import PdtConfig, edit_config
from pdt.errors import BindingMismatch, TrainingStopped, UsageError
from pdt.model.build import random_model
from pdt.model.store import load_model, save_model
from pdt.records.batch import RecordShards
from pdt.terms import Loss, PlanCondition
from pdt.training import engine, loop
from pdt.training.checkpoint import latest_checkpoint, load_checkpoint
from pdt.training.loop import Trainer
from pdt.training.losses import compute_losses
from pdt.training.watch.metrics import METRICS
from tests.conftest import ROOT
from tests.support.training_samples import corpus

Records = tuple[RecordShards, PdtConfig]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def finished(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole curriculum of three stages, never interrupted."""
    run = tmp_path_factory.mktemp("run")
    start(records, run).train()
    return run


def start(records: Records, run: Path) -> Trainer:
    return Trainer(random_model(records[1], seed=0), records[0], run)


def metrics(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "at")} for line in lines]


def numbers(line: dict[str, Any]) -> dict[str, Any]:
    """A line without its words, which `approx` does not take."""
    return {name: value for name, value in line.items() if not isinstance(value, str)}


@pytest.mark.paper("§6", "Table 2")
def test_the_whole_curriculum_runs_and_logs_every_part(finished: Path) -> None:
    lines = metrics(finished)
    assert [line["step"] for line in lines] == list(range(8))
    assert [line["stage"] for line in lines] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert {loss.value for loss in Loss} <= lines[-1].keys()
    assert "token" not in lines[3] and "plan" not in lines[0]
    assert {"usage_deficit_0", "usage_deficit_1", "gradient_norm"} <= lines[0].keys()
    assert lines[-1]["documents"] == 16 and lines[-1]["step_documents"] == 2


@pytest.mark.paper("§6")
def test_checkpoints_stay_at_stage_borders_and_the_last_few(finished: Path) -> None:
    names = sorted(path.name for path in finished.glob("step-*"))
    assert names == ["step-000003", "step-000005", "step-000006", "step-000008"]


@pytest.mark.paper("§6")
@pytest.mark.parametrize("stop", [2, 6])
def test_a_resumed_run_gives_bit_identical_losses_and_weights(
    records: Records, finished: Path, tmp_path: Path, stop: int
) -> None:
    start(records, tmp_path).train(until=stop)
    torch.manual_seed(99)
    Trainer.resume(records[0], tmp_path, records[1]).train()
    assert metrics(tmp_path) == metrics(finished)
    ours, theirs = (load_model(run / "step-000008" / "model") for run in (tmp_path, finished))
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name


@pytest.mark.paper("§6")
def test_a_killed_run_goes_on_to_the_same_numbers(
    records: Records, finished: Path, tmp_path: Path
) -> None:
    run, config = tmp_path / "run", tmp_path / "config.json"
    config.write_text(records[1].model_dump_json())
    command = [sys.executable, str(ROOT / "tests/support/dying.py"), str(config)]
    ended = subprocess.run([*command, str(records[0].directory), str(run), "6"], cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    assert latest_checkpoint(run) == run / "step-000005" and len(metrics(run)) == 6
    Trainer.resume(records[0], run, records[1]).train()
    assert not list(run.glob(".step-*"))
    for ours, theirs in zip(metrics(run), metrics(finished), strict=True):
        # The other process may sum with another number of threads.
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-6)


@pytest.mark.paper("§6")
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    records: Records, tmp_path: Path
) -> None:
    start(records, tmp_path).train(until=4)
    broken = tmp_path / "step-000004" / "optimizer.safetensors"
    broken.write_bytes(broken.read_bytes()[:-1])
    assert latest_checkpoint(tmp_path) == tmp_path / "step-000003"
    (tmp_path / ".step-000005.partial-x").mkdir()
    Trainer.resume(records[0], tmp_path, records[1])
    assert not list(tmp_path.glob(".step-*"))


@pytest.mark.paper("§6")
@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("notes.condition=self_only", "notes.condition"),
        ("lanes.fork_layer=1", "lanes.fork_layer"),
        ("training.optimizer.learning_rate=0.1", "training.optimizer.learning_rate"),
        ("training.optimizer.warmup_steps=1", "training.optimizer.warmup_steps"),
        ("training.steps=9", "training.steps"),
        ("training.seed=1", "training.seed"),
        ("objective.note=0.5", "objective.note"),
    ],
)
def test_a_checkpoint_never_crosses_an_architecture_a_condition_or_a_schedule(
    records: Records, finished: Path, override: str, says: str
) -> None:
    other = edit_config(records[1], [override], where="test")
    with pytest.raises(BindingMismatch, match=says):
        load_checkpoint(finished / "step-000008", other)


def test_how_often_to_save_may_change(records: Records, finished: Path) -> None:
    other = edit_config(records[1], ["training.save_steps=1"], where="test")
    assert load_checkpoint(finished / "step-000008", other)[1].step == 8


def test_a_loss_that_is_not_finite_stops_and_names_the_last_good_checkpoint(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = start(records, tmp_path)
    trainer.train(until=2)
    monkeypatch.setattr(engine, "total_loss", lambda parts, weights: torch.tensor(torch.nan))
    with pytest.raises(TrainingStopped, match=r"(?s)step 2: .*step-000002"):
        trainer.train()


def test_a_full_disk_stops_and_names_the_last_good_checkpoint(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = start(records, tmp_path)
    trainer.train(until=2)

    def full(*rest: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loop, "save_checkpoint", full)
    with pytest.raises(TrainingStopped, match=r"(?s)No space left.*step-000002"):
        trainer.train()


def test_records_of_another_model_are_refused_before_the_first_step(
    records: Records, tmp_path: Path
) -> None:
    for setting in ("lanes.block_tokens=4", "records.projection_seed=1", "records.encoder.name=x"):
        other = edit_config(records[1], [setting], where="test")
        with pytest.raises(BindingMismatch, match=re.escape(setting.split("=")[0][:15])):
            Trainer(random_model(other, seed=0), records[0], tmp_path)
    with pytest.raises(UsageError, match="no whole checkpoint"):
        Trainer.resume(records[0], tmp_path, records[1])
    greedy = edit_config(records[1], ["training.optimizer.batch_documents=6"], where="test")
    with pytest.raises(UsageError, match="holds 5 documents"):
        Trainer(random_model(greedy, seed=0), records[0], tmp_path)


@pytest.mark.paper("Appendix A")
def test_two_documents_a_batch_give_the_step_of_two_accumulated(
    records: Records, tmp_path: Path
) -> None:
    found = []
    for size, accumulation in ((1, 2), (2, 1)):
        config = edit_config(
            records[1],
            [
                f"training.optimizer.batch_documents={size}",
                f"training.optimizer.accumulation={accumulation}",
            ],
            where="test",
        )
        run = tmp_path / str(size)
        Trainer(random_model(config, seed=0), records[0], run).train(until=1)
        found.append(numbers(metrics(run)[0]))
    assert found[0] == pytest.approx(found[1], rel=1e-3, abs=1e-5)


@pytest.mark.paper("Table 2")
def test_oracle_plans_let_the_lanes_learn_four_documents_by_heart(records: Records) -> None:
    model = random_model(records[1], seed=0)
    # A random tied head is too small to say anything with confidence; a pretrained one is not.
    model.trunk.embed_tokens.weight.data.mul_(25)
    batch = next(iter(records[0].batches(4)))
    lengths = torch.tensor([[20, 5, 11], [16, 20, 3], [9, 8, 7], [1, 17, 12]])
    tokens = torch.randint(400, (4, 3, 20))
    short = replace(
        batch,
        prompt_tokens_BS=torch.randint(400, (4, 10)),
        section_tokens_BKT=tokens.masked_fill(torch.arange(20) >= lengths[..., None], -1),
        dependency_token_BKT=torch.zeros(4, 3, 20, dtype=torch.bool),
        fact_begin_BKT=torch.zeros(4, 3, 20, dtype=torch.bool),
    )
    optimizer = torch.optim.AdamW(model.lanes.parameters(), lr=1e-2)
    losses = []
    for _ in range(100):
        parts = compute_losses(model, short, PlanCondition.ORACLE, [Loss.TOKEN]).parts
        losses.append(parts[Loss.TOKEN].item())
        parts[Loss.TOKEN].backward()
        torch.nn.utils.clip_grad_norm_(model.lanes.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert losses[0] > 4 and losses[-1] < 0.1, losses[::10]


def test_the_command_trains_stops_and_goes_on(records: Records, tmp_path: Path) -> None:
    tree = tmp_path / "run.yaml"
    tree.write_text(records[1].model_dump_json(), encoding="utf-8")
    run = tmp_path / "run"
    command = [str(records[0].directory), "--out", str(run), "--config", str(tree)]
    command += ["--set", "training.save_steps=1000"]  # where it stops it saves all the same
    runner = CliRunner()
    first = runner.invoke(app, ["train", "run", *command, "--until", "2"])
    assert first.exit_code == 0, first.output
    assert first.stdout.strip() == str(run) and "step 2 of 8" in first.stderr
    again = runner.invoke(app, ["train", "run", *command])
    assert isinstance(again.exception, UsageError)
    assert runner.invoke(app, ["train", "run", *command, "--until", "3", "--resume"]).exit_code == 0
    assert [line["step"] for line in metrics(run)] == [0, 1, 2]
    other = [*command, "--resume", "--set", "notes.condition=self_only"]
    assert isinstance(runner.invoke(app, ["train", "run", *other]).exception, BindingMismatch)


def test_states_that_the_command_kept_are_found_by_the_run(
    records: Records, tmp_path: Path
) -> None:
    save_model(random_model(records[1], seed=0), tmp_path / "model", with_trunk=True)
    runner, cache = CliRunner(), tmp_path / "states"
    states = ["study", "states", str(records[0].directory), "--cache", str(cache)]
    states += ["--model", str(tmp_path / "model"), "--parts", "2", "--part"]
    assert isinstance(runner.invoke(app, [*states, "3"]).exception, UsageError)
    assert not cache.exists()
    for part in ("1", "2"):
        kept = runner.invoke(app, [*states, part])
        assert kept.exit_code == 0, kept.output
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.safetensors")}
    assert files and len(list(cache.glob("part-*-of-2.json"))) == 2
    tree = tmp_path / "run.yaml"
    tree.write_text(records[1].model_dump_json(), encoding="utf-8")
    command = ["train", "run", str(records[0].directory), "--out", str(tmp_path / "run")]
    command += ["--config", str(tree), "--model", str(tmp_path / "model"), "--until", "2"]
    command += ["--set", f"training.trunk_cache.directory={cache}"]
    run = runner.invoke(app, command)
    assert run.exit_code == 0, run.output
    assert files == {path: path.stat().st_mtime_ns for path in cache.rglob("*.safetensors")}
