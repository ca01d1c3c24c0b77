"""An evaluation whose batches are shared out among processes gives what one process gives."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from pdt.errors import PdtError
from pdt.evaluation.generate.open import Asked
from pdt.evaluation.generate.parts import Parts
from pdt.evaluation.generate.runs import Runs
from pdt.evaluation.generate.workers import measure_parts
from pdt.evaluation.lines.raw import Raw, read_raw
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.verify.verify import verify_results
from pdt.model.store import save_model
from pdt.records.batch import RecordShards
from tests.support.evaluations import small_models, small_settings

pytestmark = pytest.mark.slow

T = TypeVar("T")
PART = "*-0*/manifest.json"
KINDS = ("documents", "written", "likelihoods", "coined", "judgments")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model") / "bus"
    save_model(small_models()[Weights.BUS], directory, with_trunk=True)
    return directory


def command(corpus: RecordShards, model: Path, out: Path, workers: int) -> list[str]:
    return [
        sys.executable, "-m", "pdt", "eval", "run", str(corpus.directory), "--model", str(model),
        "--batch=2", "--condition=learned", "--condition=no_dynamic", "--resamples=100",
        "--repeats=1", f"--out={out}", f"--workers={workers}",
    ]  # fmt: skip


def begin(asked: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(asked, stderr=subprocess.PIPE, text=True)


def wait_for(process: "subprocess.Popen[str]", found: Callable[[], list[T]]) -> list[T]:
    while not (there := found()):
        assert process.poll() is None, "it ended before it could be disturbed"
        time.sleep(0.005)
    return there


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def judged(*asked: str) -> Raw:
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr  # untrained: gates are unmet
    assert "Traceback" not in done.stderr
    out = Path(next(word for word in asked if word.startswith("--out=")).removeprefix("--out="))
    verify_results(out)
    return read_raw(out)


def test_a_killed_evaluation_of_two_workers_goes_on_to_the_numbers_of_one(
    corpus: RecordShards, model: Path, tmp_path: Path
) -> None:
    alone = judged(*command(corpus, model, tmp_path / "alone", 1))
    shared = command(corpus, model, tmp_path / "shared", 2)
    begun = tmp_path / ".shared.begun"
    process = begin(shared)
    wait_for(process, lambda: list(begun.glob(PART)))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)  # its workers hold this pipe too: they all end
    raw = judged(*shared)
    assert not begun.exists()
    for kind in KINDS:
        assert getattr(raw, kind) == getattr(alone, kind), kind
    assert raw.execution is not None
    timed = {run.record_id for run in raw.execution.runs}
    assert timed == {document.record_id for document in raw.documents}, "not of one batch alone"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_worker_that_dies_is_said_in_two_lines_and_its_batches_are_kept(
    corpus: RecordShards, model: Path, tmp_path: Path
) -> None:
    process = begin(command(corpus, model, tmp_path / "out", 2))
    worker = wait_for(process, lambda: workers_of(process))[0]
    os.kill(worker, signal.SIGSTOP)  # the other one writes the first part, and the run cannot end
    wait_for(process, lambda: list((tmp_path / ".out.begun").glob(PART)))
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3 and "A worker died" in said and "fewer --workers" in said
    assert "Traceback" not in said
    assert list((tmp_path / ".out.begun").glob(PART))


def test_a_worker_that_cannot_start_says_why(corpus: RecordShards, tmp_path: Path) -> None:
    runs = Runs(corpus, small_models(), small_settings(corpus.config), parts=Parts(tmp_path))
    asked = Asked(corpus.directory, {Weights.BUS: tmp_path / "gone"})
    with pytest.raises(PdtError, match="gone is not a directory"):
        measure_parts(runs, asked, workers=1)
