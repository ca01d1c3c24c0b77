"""A run is seen while it goes and after, and its borders measure what no step has read."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner, Result

from pdt.cli import app
from pdt.config import PdtConfig, edit_config
from pdt.errors import BindingMismatch, CorruptFile, TrainingStopped, UsageError
from pdt.lock import hold_run
from pdt.model.build import random_model
from pdt.model.store import load_model
from pdt.provenance import MANIFEST, read_json_object, sha256_file
from pdt.records.batch import RecordShards
from pdt.terms import Loss, PlanCondition, Split
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.loop import Trainer
from pdt.training.losses import compute_losses
from pdt.training.preflight import checkpoint_bytes
from pdt.training.watch.bar import ProgressView
from pdt.training.watch.boards import TENSORBOARD
from pdt.training.watch.metrics import (
    EVALUATION,
    METRICS,
    PLANS_APART,
    STEP,
    losses_of,
    read_metrics,
)
from pdt.training.watch.pace import Pace, spoken
from pdt.training.watch.plot import draw
from pdt.training.watch.tally import gate_values
from tests.conftest import open_model
from tests.support.record_samples import train_tokenizer
from tests.support.training_samples import corpus

pytestmark = pytest.mark.slow

Records = tuple[RecordShards, PdtConfig]
CLOCK = ("seconds", "at")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return corpus(tmp_path_factory.mktemp("corpus"), held_out=3)


@pytest.fixture(scope="module")
def finished(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight steps of three stages, never interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    done = train(records, run)
    assert done.exit_code == 0, (done.exception, done.exc_info, done.output)
    return run


def train(records: Records, run: Path, *more: str) -> Result:
    tree = run.parent / f"{run.name}.yaml"
    tree.write_text(records[1].model_dump_json(), encoding="utf-8")
    where = ["train", "run", str(records[0].directory), "--out", str(run), "--config", str(tree)]
    return CliRunner().invoke(app, [*where, *more])


def lines(run: Path, kind: str) -> list[dict[str, Any]]:
    found = [line for line in read_metrics(run) if line["kind"] == kind]
    return [{k: v for k, v in line.items() if k not in CLOCK} for line in found]


@pytest.mark.paper("§6", "Table 2")
def test_a_stage_border_measures_held_out_documents_under_the_plans_of_its_stage(
    records: Records, finished: Path
) -> None:
    measured = lines(finished, EVALUATION)
    assert [line["step"] for line in measured] == [2, 4, 7]
    assert [line["plan_source"] for line in measured] == ["oracle", "learned", "learned"]
    held = records[0].of_split(Split.VALIDATION)
    plans = (PlanCondition.ORACLE, PlanCondition.LEARNED, PlanCondition.LEARNED)
    for line, plan in zip(measured, plans, strict=True):
        model = load_model(finished / f"step-{line['step'] + 1:06d}" / "model")
        sums = dict.fromkeys(Loss, 0.0)
        for place, batch in enumerate(held.batches(1)):
            moved = assign_lanes(batch, draw_assignment(records[1].training.seed, [place], 3))
            with torch.no_grad():
                parts = compute_losses(model, moved, plan, tuple(Loss)).parts
            sums = {loss: sums[loss] + part.item() for loss, part in parts.items()}
        assert line["documents"] == 3
        for loss, value in sums.items():
            assert line[loss.value] == pytest.approx(value / 3, rel=1e-6), loss


@pytest.mark.paper("§6")
@pytest.mark.parametrize("stop", [3, 4])
def test_an_interrupted_run_measures_and_learns_what_an_uninterrupted_one_does(
    records: Records, finished: Path, tmp_path: Path, stop: int
) -> None:
    run = tmp_path / "run"
    assert train(records, run, "--until", str(stop)).exit_code == 0
    assert train(records, run, "--resume").exit_code == 0
    for kind in (STEP, EVALUATION):
        assert lines(run, kind) == lines(finished, kind)


@pytest.mark.paper("§6")
def test_measuring_changes_nothing_that_is_learned(
    records: Records, finished: Path, tmp_path: Path
) -> None:
    train(records, tmp_path / "run", "--set", "training.watch.evaluate_documents=0")
    assert lines(tmp_path / "run", STEP) == lines(finished, STEP)
    assert lines(tmp_path / "run", EVALUATION) == []


def test_a_corpus_without_validation_documents_is_said_once(tmp_path: Path) -> None:
    shards, config = corpus(tmp_path)
    done = train((shards, config), tmp_path / "run", "--until", "5")
    assert done.exit_code == 0
    assert done.stderr.count("holds no validation documents") == 1
    assert lines(tmp_path / "run", EVALUATION) == []


def test_a_step_counts_the_tokens_it_read_and_no_others(records: Records, finished: Path) -> None:
    taken = lines(finished, STEP)
    first = records[0].batches(1, seed=records[1].training.seed)
    for line in taken[:2]:
        batches = [next(first), next(first)]
        assert line["prompt_tokens"] == sum(int(b.prompt_valid_BS.sum()) for b in batches)
        assert line["section_tokens"] == sum(int(b.section_lengths_BK.sum()) for b in batches)
    assert [line["section_tokens"] > 0 for line in taken] == [True] * 3 + [False] * 2 + [True] * 3


@pytest.mark.paper("§3.4", "§3.5")
def test_gates_and_codes_are_logged_for_every_layer_and_codebook(finished: Path) -> None:
    model = open_model()
    model.lane_layers[1].snc.inner_gate.data.fill_(0.25)
    model.lane_layers[0].plan_kv.residual_gate.data.fill_(0.0)
    gates = gate_values(model)
    assert gates["plan_gate_0"] == 0.5 and gates["inner_gate_1"] == 0.25
    assert gates["notes_gate_0"] == pytest.approx(torch.sigmoid(torch.tensor(2.0)).item())
    first, *_, last = lines(finished, STEP)
    assert gates.keys() <= first.keys()
    assert first["plan_gate_0"] == pytest.approx(0.018, abs=1e-3)
    assert first["plan_gate_0"] != last["plan_gate_0"]
    for name in ("codes_in_use_0", "codes_in_use_1"):
        assert 0 < first[name] <= min(1, first["notes"] / 8)


def test_tensorboard_holds_every_step_once_after_a_resumed_run(
    records: Records, tmp_path: Path
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "run"
    train(records, run, "--until", "5")
    shutil.rmtree(run / "step-000005")  # as if it had been killed before that save
    shutil.rmtree(run / "step-000004")
    assert train(records, run, "--resume").exit_code == 0
    board = EventAccumulator(str(run / TENSORBOARD)).Reload()
    taken = lines(run, STEP)
    events = board.Scalars("train/loss")
    assert [event.step for event in events] == list(range(8))
    assert [event.value for event in events] == pytest.approx([line["loss"] for line in taken])
    assert [event.step for event in board.Scalars("held_out/token")] == [2, 4, 7]
    assert len(board.Scalars("gates/notes_gate_1")) == len(board.Scalars("optimizer/stage")) == 8


def test_a_board_that_cannot_be_opened_leaves_no_run(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights & Biases without a key; a stand-in answers as version 0.31 did."""
    package = tmp_path / "packages" / "wandb"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Error(Exception): pass\n"
        "def init(**settings): raise Error('No API key configured.')\n"
    )
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.syspath_prepend(str(package.parent))
    done = train(records, tmp_path / "run", "--set", "training.watch.wandb_project=demo")
    sys.modules.pop("wandb", None)
    assert isinstance(done.exception, UsageError) and "WANDB_MODE=offline" in str(done.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed here")
def test_a_board_that_is_not_installed_is_refused_with_its_remedy(
    records: Records, tmp_path: Path
) -> None:
    done = train(records, tmp_path / "run", "--set", "training.watch.wandb_project=demo")
    assert isinstance(done.exception, UsageError) and "pdt[wandb]" in str(done.exception)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "copy")


def status(run: Path, *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["train", "status", str(run), "--json", *more])
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def test_status_tells_a_finished_a_running_and_a_stopped_run(copied: Path) -> None:
    found = status(copied)
    assert (found["state"], found["step"], found["stage"]) == ("finished", 8, 2)
    assert found["seconds_left"] is None and len(found["evaluations"]) == 3
    assert found["tokens_per_second"] > 0 and set(found["losses"]) == {"loss", *Loss}
    assert all(0 <= line[PLANS_APART] <= 1 for line in found["evaluations"])
    shutil.rmtree(copied / "step-000008")
    shown = CliRunner().invoke(app, ["train", "status", str(copied)]).stdout
    assert "stopped, step 8 of 8" in shown and "goes on from   step-000006 with --resume" in shown
    assert "learned plans apart" in shown
    with hold_run(copied):
        assert status(copied)["state"] == "running"
        with pytest.raises(UsageError, match="Another process is training"), hold_run(copied):
            pass
    assert status(copied)["state"] == "stopped"


def test_status_tells_what_a_kill_left_behind(copied: Path) -> None:
    broken = copied / "step-000008/model/lanes.safetensors"
    broken.write_bytes(broken.read_bytes()[:-1])
    (copied / ".step-000009.partial-x").mkdir()
    with (copied / METRICS).open("a") as file:
        file.write('{"kind": "step", "ste')
    found = status(copied)
    assert found["state"] == "stopped" and found["resumes_from"] == "step-000006"
    damage = {point["name"]: point["damage"] for point in found["checkpoints"]}
    assert "lanes.safetensors" in damage.pop("step-000008") and set(damage.values()) == {None}
    assert found["half_written"] == [".step-000009.partial-x"] and found["step"] == 8
    tampered = copied / "step-000006/optimizer.safetensors"
    tampered.write_bytes(tampered.read_bytes()[:-1] + b"x")
    assert status(copied)["resumes_from"] == "step-000006"  # of the right size
    assert status(copied, "--verify")["resumes_from"] == "step-000005"


def test_status_of_something_else_is_refused(tmp_path: Path, copied: Path) -> None:
    done = CliRunner().invoke(app, ["train", "status", str(tmp_path)])
    assert isinstance(done.exception, UsageError) and "not a training run" in str(done.exception)
    (copied / METRICS).write_text("[]\n" + (copied / METRICS).read_text())
    done = CliRunner().invoke(app, ["train", "status", str(copied)])
    assert isinstance(done.exception, CorruptFile) and "line 1" in str(done.exception)


def test_the_plot_has_every_loss_gate_and_codebook(
    records: Records, finished: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(
        app, ["train", "plot", str(finished), "--out", str(tmp_path / "a.png")]
    )
    assert done.stdout.strip() == str(tmp_path / "a.png"), done.exception
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    figure = draw(records[1], lines(finished, STEP), lines(finished, EVALUATION), "run")
    labels = {str(line.get_label()) for panel in figure.axes for line in panel.get_lines()}
    assert {loss.value.replace("_", " ") for loss in Loss} <= labels
    assert {"σ Plan-KV", "σ SNC", "inner SNC", "codebook 0", "codebook 1"} <= labels
    shaded = [len(panel.patches) for panel in figure.axes[:6]]
    assert shaded == [3] * 6  # one a stage
    wrong = CliRunner().invoke(app, ["train", "plot", str(finished), "--out", "a.xyz"])
    assert isinstance(wrong.exception, UsageError) and "png" in str(wrong.exception)


@pytest.mark.paper("§6")
def test_a_run_is_bound_to_its_corpus(records: Records, finished: Path, tmp_path: Path) -> None:
    manifest = read_json_object(finished / MANIFEST)
    assert manifest["inputs"]["records"]["digest"] == records[0].digest
    assert manifest["inputs"]["tokenizer"] == sha256_file(tokenizer(records))
    assert manifest["config"]["training"]["steps"] == 8 and manifest["code_revision"]
    run = tmp_path / "run"
    train(records, run, "--until", "2")
    other = corpus(tmp_path, documents=6)[0], records[1]
    done = train(other, run, "--resume")
    assert isinstance(done.exception, BindingMismatch)
    assert re.search(r"documents +run 5 +given 6", str(done.exception))
    assert "digest" in str(done.exception)


def tokenizer(records: Records) -> Path:
    assert records[1].records.tokenizer.file is not None
    return Path(records[1].records.tokenizer.file)


def test_time_left_takes_every_stage_at_its_own_speed(records: Records) -> None:
    pace = Pace(records[1].training)  # stages of 3, 2 and 3 steps
    assert pace.seconds_left is None and pace.tokens_per_second is None
    for step, (stage, seconds) in enumerate([(0, 4.0), (0, 4.0), (0, 4.0), (1, 1.0)]):
        pace.take(
            {
                "kind": STEP,
                "step": step,
                "stage": stage,
                "seconds": seconds,
                "prompt_tokens": 30,
                "section_tokens": 10,
                "step_documents": 2,
            }
        )
    assert pace.seconds_left == 1 * 1.0 + 3 * 4.0
    assert not pace.knows_every_stage  # the third is taken to be as slow as the first
    assert pace.tokens_per_second == 40 and pace.documents_per_second == 2
    assert [spoken(s) for s in (7, 600, 8000, 400_000)] == [
        "7 s",
        "10 min",
        "2 h 13 min",
        "4.6 days",
    ]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_bar_fits_its_terminal_and_says_what_is_asked(
    records: Records, finished: Path, width: int
) -> None:
    view = ProgressView(records[1].training, read_metrics(finished))
    console = Console(width=width, force_terminal=True, color_system=None, record=True)
    with console.capture() as caught:
        console.print(view)
    shown = caught.get().splitlines()
    assert max(map(len, shown)) <= width
    assert "stage 2" in shown[0] and "tokens/s" in shown[1] and "left" in shown[1]
    assert "token" in shown[2]
    assert any(line.startswith("held out") for line in shown[3:])
    (*_, last) = (line for line in read_metrics(finished) if line["kind"] == STEP)
    for name, value in losses_of(last).items():
        assert any(f"{name} {value:.4g}" in line for line in shown), f"{name} was cut off"


@pytest.fixture
def refused(records: Records, tmp_path: Path) -> Iterator[Path]:
    """Where a run that is refused must leave nothing."""
    yield tmp_path / "run"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("training.stepz=3", r"training\.stepz: unknown key .* did you mean steps\?"),
        ("training.stages=[{first_step: 0, plan: oracle, trains: []}]", "trains nothing"),
        ("training.stages=[{first_step: 0, plan: oracle, trains: [snc]}]", "lists snc"),
        (
            "training.stages=[{first_step: 0, plan: learned, trains: [planner, plan_kv]}]",
            r"lists plan_kv.*plan, order",
        ),
        (
            "objective={plan: 0, order: 0}",
            "Stage 1 of training.stages lists planner",
        ),
        ("trunk.shape.vocabulary=300", "tokens that the trunk does not know"),
        ("planner.nodes=5", r"planner\.nodes +records 4 +model 5"),
    ],
)
def test_a_run_that_could_learn_nothing_is_refused_before_its_first_step(
    records: Records, refused: Path, override: str, says: str
) -> None:
    done = train(records, refused, "--set", override)
    assert re.search(says, str(done.exception), re.S), done.exception
    assert getattr(done.exception, "exit_code", None) in (2, 3)


@pytest.mark.paper("§4.3")
def test_records_of_another_tokenizer_are_refused_before_the_first_step(
    records: Records, refused: Path, tmp_path: Path
) -> None:
    other = train_tokenizer(tmp_path / "other.json", size=300)
    done = train(records, refused, "--set", f"records.tokenizer.file={other}")
    assert isinstance(done.exception, BindingMismatch)
    assert "compiled with another tokenizer" in str(done.exception)
    model = tmp_path / "model"
    tree = tmp_path / "model.yaml"
    wrong = edit_config(records[1], [f"records.tokenizer.file={other}"], where="test")
    tree.write_text(wrong.model_dump_json())
    made = CliRunner().invoke(app, ["model", "init", "--config", str(tree), "--out", str(model)])
    assert made.exit_code == 0, made.exception
    done = train(records, refused, "--model", str(model))
    assert "compiled with another tokenizer" in str(done.exception)


def test_a_disk_without_room_for_one_checkpoint_is_refused(
    records: Records, refused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(refused.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=1000))
    done = train(records, refused)
    assert isinstance(done.exception, UsageError)
    assert "one checkpoint takes about" in str(done.exception)


def test_the_estimate_of_a_checkpoint_is_what_one_takes(finished: Path) -> None:
    directory = finished / "step-000008"
    real = sum(path.stat().st_size for path in directory.rglob("*.safetensors"))
    assert checkpoint_bytes(load_model(directory / "model")) == pytest.approx(real, rel=0.1)


def test_a_run_directory_of_another_configuration_is_refused(
    records: Records, finished: Path
) -> None:
    again = train(records, finished)
    assert isinstance(again.exception, UsageError) and "--resume" in str(again.exception)
    before = (finished / METRICS).read_bytes()
    done = train(records, finished, "--resume", "--set", "training.optimizer.clip_norm=2")
    assert isinstance(done.exception, BindingMismatch)
    assert "training.optimizer.clip_norm" in str(done.exception)
    assert (finished / METRICS).read_bytes() == before


def test_metrics_that_cannot_be_written_stop_the_run(records: Records, tmp_path: Path) -> None:
    trainer = Trainer(random_model(records[1], seed=0), records[0], tmp_path)
    (tmp_path / METRICS).mkdir()
    with pytest.raises(TrainingStopped, match="metrics could not be written"):
        trainer.train()
