"""Runs of a screen on schedulers: Slurm under a stand-in, Ray as a real cluster of this machine."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.errors import PdtError, UsageError
from pdt.provenance import read_json_object
from pdt.screen.place import Place, RunState
from tests.support.screens import process_of, small_screen
from tests.support.slurm import slurm_stand_in

LONG = 1200
"""Seconds: a machine may be busy."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * LONG),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc"),
]


def command(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["screen", *arguments])
    if isinstance(done.exception, PdtError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def screen(tmp_path: Path) -> Path:
    """Two runs."""
    axes = [{"name": "memory width", "key": "reads.memory_width", "levels": [16]}]
    return small_screen(tmp_path, seeds=[1729], axes=axes)[1]


def test_slurm_runs_a_task_for_every_run_that_is_not_whole(
    screen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real scripts and tasks; only the scheduler is a program of ours that runs them at once."""
    with pytest.raises(UsageError, match=r"cluster\.partition is not set"):
        command("run", str(screen), "--on", "slurm")
    slurm_stand_in(tmp_path / "bin", monkeypatch)
    on = ["--on", "slurm", "--set", "cluster.partition=cpu"]
    place = Place.open(screen)
    command("run", str(screen), "--only", "baseline.1729")
    done = place.of("baseline.1729") / "done.json"
    before = done.read_bytes()
    assert "submitted 1 runs as job" in command("run", str(screen), *on)
    assert {s.state for s in place.standings()} == {RunState.FINISHED}
    assert done.read_bytes() == before
    script = (screen / "logs" / "launch_script.slurm").read_text()
    assert "#SBATCH --requeue" in script and "#SBATCH --array=0-0" in script
    assert read_json_object(screen / "jobs.json")["slurm"]


def parents(process: int) -> list[int]:
    """A process's parent, its parent, and so on."""
    found = []
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(process)
    return found


def named(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def is_ray_worker(process: int) -> bool:
    """A worker of Ray renames itself once it runs something."""
    return any(word in named(process) for word in ("ray::", "default_worker.py"))


def test_a_screen_on_ray_goes_on_after_its_worker_was_killed(
    screen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real cluster of two nodes with a worker each: one is killed, the same command goes on."""
    pytest.importorskip("ray", reason="no ray: pip install 'pdt[cluster]'")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "memory": 8 << 30}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        place, run = Place.open(screen), "memory-width-16.1729"
        run_it = [sys.executable, "-m", "pdt", "screen", "run", str(screen), "--on", "ray"]
        on = {**os.environ, "RAY_ADDRESS": cluster.address}
        asked = subprocess.Popen([*run_it, "--workers", "2"], env=on)
        end = time.monotonic() + LONG
        while not list((place.of(run) / "train").glob("step-*")):
            assert asked.poll() is None and time.monotonic() < end
            time.sleep(0.2)
        task = process_of(run)
        assert task is not None
        workers = [p for p in parents(task) if is_ray_worker(p)]
        assert workers, [named(p) for p in parents(task)]
        os.kill(workers[-1], signal.SIGKILL)
        if asked.wait(timeout=LONG) != 0:
            subprocess.run([*run_it, "--workers", "2"], env=on, check=True, timeout=LONG)
        assert {s.state for s in place.standings()} == {RunState.FINISHED}
        assert not any(s.failures for s in place.standings())
    finally:
        cluster.shutdown()
        shutil.rmtree("/tmp/ray_logs", ignore_errors=True)


def test_without_a_ray_cluster_the_command_says_so(
    screen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="no ray: pip install 'pdt[cluster]'")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UsageError, match="No Ray cluster was found"):
        command("run", str(screen), "--on", "ray")
