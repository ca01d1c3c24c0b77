"""Runs of a sealed screen: bound to their entries, done once, taken up again after any kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from pdt.cli import app
from pdt.errors import BindingMismatch, ContractBroken, PdtError, UsageError
from pdt.lock import is_held
from pdt.model.trunk import tensors_digest
from pdt.provenance import read_json_object
from pdt.screen.manifest import SCREEN, Screen
from pdt.screen.place import DONE, FAILURES, Place, RunState
from pdt.screen.scale import read_audit
from pdt.screen.supervise import LOSSES, Outcome, supervise
from pdt.screen.task import StopAsked, attempt, check_inputs, do_run
from tests.support.screens import process_of, sealed_anew, small_screen

LONG = 900
"""Seconds: a machine may be busy."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * LONG)]

RUN = "memory-width-16.1729"


def command(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["screen", *arguments])
    if isinstance(done.exception, PdtError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A screen whose three runs are done, two at a time."""
    _, out = small_screen(tmp_path_factory.mktemp("screen"), seeds=[1729])
    command("run", str(out), "--workers", "2")
    return out


def weights(place: Place, run: str) -> dict[str, str]:
    """Digests of all that was learned, AdamW's moments too; nothing is drawn after a start."""
    done = place.done(run)
    assert done is not None
    directory = place.of(run) / done.checkpoint
    return {
        str(path.relative_to(directory)): tensors_digest(
            item for item in sorted(load_file(path).items()) if item[0] != "torch_random_state"
        )
        for path in sorted(directory.rglob("*.safetensors"))
    }


def measures(place: Place, run: str) -> dict[str, object]:
    results = json.loads((place.of(run) / "verdict" / "results.json").read_text())
    return {k: v for k, v in results["measures"].items() if not k.startswith("execution")}


@pytest.mark.paper("Appendix A")
def test_every_run_of_a_screen_is_trained_and_judged_and_bound_to_its_entry(whole: Path) -> None:
    place = Place.open(whole)
    for standing in place.standings():
        run = standing.entry.run
        done, train = place.done(run), place.of(run) / "train" / "manifest.json"
        assert standing.state is RunState.FINISHED and done is not None
        assert done.seal == place.screen.seal and done.train_seconds > 0
        inputs = read_json_object(train)["inputs"]
        assert inputs["screen"] == {"seal": place.screen.seal, "run": run}
        assert inputs["records"]["digest"] == place.screen.records.digest
        verdict = read_json_object(place.of(run) / "verdict" / "manifest.json")
        model = place.screen.config_of(standing.entry).model_dump(mode="json")
        assert verdict["config"]["model"] == model
        assert verdict["inputs"]["records"] == place.screen.held_out.digest
    said = command("status", str(whole))
    assert "3 finished" in said and "notes-self-only" in said
    assert len(json.loads(command("status", str(whole), "--json"))["runs"]) == 3


def test_a_finished_run_is_never_done_again(whole: Path) -> None:
    place = Place.open(whole)
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert "3 finished" in command("run", str(whole))
    do_run(place, RUN)
    after = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    changed = {path.name for path in before if after.get(path) != before[path]}
    assert changed <= {"run.lock"} and after.keys() == before.keys()


def test_an_edited_screen_does_not_run(whole: Path, tmp_path: Path) -> None:
    tree = json.loads((whole / SCREEN).read_text())
    tree["variants"][0]["config"]["training"]["optimizer"]["learning_rate"] = 1.0
    (tmp_path / SCREEN).write_text(json.dumps(tree))
    with pytest.raises(ContractBroken, match="changed after it was sealed"):
        command("run", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [SCREEN]


@pytest.mark.parametrize("what", ["records", "held_out", "code"])
def test_another_corpus_or_revision_is_refused_before_anything_is_written(
    whole: Path, tmp_path: Path, what: str
) -> None:
    place = Place.open(whole)
    options: dict[str, dict[str, Any]] = {
        "records": {"records": place.screen.held_out},
        "held_out": {"held_out": place.screen.records},
        "code": {"code": place.screen.code.model_copy(update={"digest": "0" * 64})},
    }
    changes = options[what]
    if what != "code":  # the sealed digest, at another corpus's place
        given = getattr(place.screen, what).model_copy(
            update={"directory": next(iter(changes.values())).directory}
        )
        changes = {what: given}
    sealed_anew(place.screen, tmp_path, **changes)
    with pytest.raises(BindingMismatch, match=f"another {what} than the screen was compiled"):
        command("run", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [SCREEN]


def test_a_seal_may_name_other_revisions(whole: Path, tmp_path: Path) -> None:
    screen = Place.open(whole).screen
    code = screen.code.model_copy(update={"digest": "0" * 64, "allowed": ("any",)})
    check_inputs(sealed_anew(screen, tmp_path, code=code))


def test_a_run_of_one_screen_is_not_gone_on_with_in_another(whole: Path, tmp_path: Path) -> None:
    screen = sealed_anew(Place.open(whole).screen, tmp_path, short=False)
    assert screen.seal != Place.open(whole).screen.seal
    shutil.copytree(whole / "runs" / RUN, tmp_path / "runs" / RUN)
    place = Place.open(tmp_path)
    assert place.done(RUN) is None
    with pytest.raises(BindingMismatch, match="was begun as another run"):
        do_run(place, RUN)


def test_only_where_a_run_computes_can_be_set(whole: Path) -> None:
    with pytest.raises(UsageError, match="would change what was sealed"):
        command("run", str(whole), "--set", "training.steps=9")
    with pytest.raises(UsageError, match="has no run 'nothing'"):
        command("run", str(whole), "--only", "nothing")


@pytest.mark.paper("§7.4")
def test_the_audit_of_a_failed_executor_reads_its_run_and_names_what_failed(
    whole: Path, tmp_path: Path
) -> None:
    place = Place.open(whole)
    run, out = place.of("baseline.1729"), tmp_path / "audit.json"

    def asked(train: Path, file: Path) -> list[str]:
        held_out = place.screen.held_out.directory
        return ["scale", "audit", str(run / "verdict"), "--run", str(train),
                "--held-out", held_out, "--out", str(file), "--documents", "2"]  # fmt: skip

    done = CliRunner().invoke(app, asked(run / "train", out))
    assert done.exit_code == 1, (done.output, done.exception)  # three steps teach no head
    audit = read_audit(out)
    passed = {check.name: check.passed for check in audit.checks}
    assert list(passed) == ["data alignment", "ownership labels", "routing heads", "optimization",
                            "cache behaviour", "plan delivery"]  # fmt: skip
    assert not passed["routing heads"] and "FAILED" in done.output
    for name in ("data alignment", "ownership labels", "cache behaviour"):
        assert passed[name], audit.checks
    assert "outline completion" in audit.failed_gates
    other = asked(place.of(RUN) / "train", tmp_path / "other.json")
    refused = CliRunner().invoke(app, other)
    assert isinstance(refused.exception, BindingMismatch)
    assert "do not belong together" in str(refused.exception)


def begun(screen: Path, run: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pdt", "screen", "run", str(screen), "--only", run],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def until(what: object, seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_a_run_killed_in_training_and_in_judging_ends_as_one_that_was_not(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    place = Place.open(tmp_path)
    command_ = begun(tmp_path, RUN)
    try:
        train, parts = place.of(RUN) / "train", place.of(RUN) / ".verdict.begun"
        for ready in (lambda: list(train.glob("step-*1")), lambda: list(parts.glob("all-*"))):
            until(ready)
            process = process_of(RUN)
            assert process is not None
            os.kill(process, signal.SIGKILL)
            until(lambda gone=process: process_of(RUN) not in (None, gone))
        assert command_.wait(timeout=LONG) == 0
    finally:
        command_.kill()
    assert weights(place, RUN) == weights(Place.open(whole), RUN)
    assert measures(place, RUN) == measures(Place.open(whole), RUN)
    assert not (place.of(RUN) / FAILURES).exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_a_killed_command_leaves_no_process_and_goes_on(whole: Path, tmp_path: Path) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    place = Place.open(tmp_path)
    command_ = begun(tmp_path, RUN)
    until(lambda: list((place.of(RUN) / "train").glob("step-*1")))
    command_.kill()
    command_.wait()
    until(lambda: process_of(RUN) is None)
    until(lambda: not is_held(place.of(RUN)))  # a dying process loses its name before its lock
    assert place.standing(place.screen.entry(RUN)).state is RunState.STOPPED
    command("run", str(tmp_path), "--only", RUN)
    assert weights(place, RUN) == weights(Place.open(whole), RUN)


def test_a_run_that_is_asked_to_stop_keeps_its_step_and_goes_on_to_the_same_end(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    place = Place.open(tmp_path)
    assert "0 runs are asked to stop" in command("stop", str(tmp_path))
    with pytest.raises(StopAsked):
        do_run(place, RUN)
    assert supervise(place, RUN) is Outcome.STOPPED and not (place.of(RUN) / "train").exists()
    place.forget_stop()
    begun_ = begun(tmp_path, RUN)
    until(lambda: (place.of(RUN) / "train" / "metrics.jsonl").exists())
    place.ask_to_stop()
    assert begun_.wait(timeout=LONG) == 0
    standing = place.standing(place.screen.entry(RUN))
    assert standing.state is RunState.STOPPED and 0 < standing.step <= 3
    command("run", str(tmp_path), "--only", RUN)
    assert weights(place, RUN) == weights(Place.open(whole), RUN)


def test_a_failure_is_kept_and_done_again_only_when_asked(whole: Path, tmp_path: Path) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    place = Place.open(tmp_path)

    def broken(place: Place, run: str) -> None:
        raise PdtError("the loss is nan")

    assert attempt(place, RUN, broken) == 3
    standing = place.standing(place.screen.entry(RUN))
    assert standing.state is RunState.FAILED and standing.doing == "the loss is nan"
    with pytest.raises(PdtError, match=rf"1 of 3 runs failed.\n  {RUN}: the loss is nan"):
        command("run", str(tmp_path), "--only", RUN)
    command("run", str(tmp_path), "--only", RUN, "--retry")
    done = place.standing(place.screen.entry(RUN))
    assert done.state is RunState.FINISHED and len(done.failures) == 1


def test_a_run_lost_again_and_again_with_nothing_saved_is_a_failure(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    place = Place.open(tmp_path)
    killer = tmp_path / "killer.py"
    killer.write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setattr(
        "pdt.screen.supervise.launch_command",
        lambda *_, **__: [sys.executable, str(killer)],
    )
    heard: list[str] = []
    assert supervise(place, RUN, told=heard.append) is Outcome.FAILED
    assert heard == [f"{RUN}: its process ended by signal 9"] * LOSSES
    assert "nothing saved" in place.failures(RUN)[0].message


def test_a_run_that_is_being_done_elsewhere_is_waited_for(whole: Path, tmp_path: Path) -> None:
    shutil.copy(whole / SCREEN, tmp_path)
    shutil.copytree(whole / "runs", tmp_path / "runs")
    place = Place.open(tmp_path)
    (place.of(RUN) / DONE).unlink()  # as if it were at its very end
    with place.held(RUN):
        second = begun(tmp_path, RUN)
        time.sleep(3)
        assert second.poll() is None
        shutil.copy(whole / "runs" / RUN / DONE, place.of(RUN) / DONE)
    assert second.wait(timeout=LONG) == 0


def test_a_run_on_two_processes_is_one_run(whole: Path, tmp_path: Path) -> None:
    screen, out = small_screen(tmp_path, "training.optimizer.accumulation=2")
    assert isinstance(screen, Screen)
    place = Place.open(out)
    assert supervise(place, RUN, gpus=2) is Outcome.FINISHED
    assert place.done(RUN) is not None
    shown = (place.of(RUN) / "train" / "metrics.jsonl").read_text().splitlines()
    assert len([line for line in shown if json.loads(line)["kind"] == "step"]) == 3
