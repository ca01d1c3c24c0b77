"""A run's process, watched: one that is lost is begun again, and goes on from what it had saved.

Whoever watches is on the same machine: this command, a task of Slurm, a worker of Ray.

Paper: Appendix A.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from enum import StrEnum

from pdt.errors import PdtError
from pdt.screen.place import LOG, Place
from pdt.screen.task import STOPPED_CODE

LOSSES = 3
"""A run that was lost so often, with nothing saved in between, is a failure."""
POLL_SECONDS = 0.1
PORTS = range(29_600, 31_600)
"""Of runs with several processes, by the run's place in the screen."""


class Outcome(StrEnum):
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class Lost(PdtError):
    """A run's process ended without a word, again and again."""


def supervise(
    place: Place,
    run: str,
    *,
    gpus: int = 0,
    nodes: int = 1,
    given_up: Callable[[], bool] = lambda: False,
    told: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Do a run in a process of its own until it ends; `given_up` ends it from outside."""
    place.of(run).mkdir(parents=True, exist_ok=True)
    command, losses = launch_command(place, run, gpus=gpus, nodes=nodes), 0
    while True:
        before, failures = place.mark(run), len(place.failures(run))
        code = _one_process(place, run, command, given_up)
        if code is None or code == STOPPED_CODE:
            return Outcome.STOPPED
        if code == 0:
            return Outcome.FINISHED
        if code == PdtError.exit_code or len(place.failures(run)) > failures:
            return Outcome.FAILED  # torchrun has exit codes of its own
        losses = losses + 1 if place.mark(run) == before else 1
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        told(f"{run}: its process ended {how}")
        if losses >= LOSSES:
            log = place.of(run) / LOG
            place.fail(run, Lost(f"Its process ended {how}, {losses} times with nothing saved "
                                 f"in between.\nPerhaps memory ran out; see {log}."))  # fmt: skip
            return Outcome.FAILED


def launch_command(place: Place, run: str, *, gpus: int, nodes: int) -> list[str]:
    """One process, or torchrun's: one for each GPU, on as many nodes as datatrove was given."""
    task = ["-m", "pdt.screen.task", str(place.directory), run]
    if gpus * nodes <= 1:
        return [sys.executable, *task]
    number = [entry.run for entry in place.screen.runs].index(run)
    address = os.environ.get("DATATROVE_NODE_IPS", "").split(",")[0] or "127.0.0.1"
    node = max(0, int(os.environ.get("DATATROVE_NODE_RANK", "0")))
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(nodes), "--nproc-per-node", str(max(1, gpus))),
        *("--node-rank", str(node), "--master-addr", address),
        *("--master-port", str(PORTS[number % len(PORTS)]), *task),
    ]


def _one_process(
    place: Place, run: str, command: list[str], given_up: Callable[[], bool]
) -> int | None:
    """The exit code, negative for a signal; None when it was given up."""
    with (place.of(run) / LOG).open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                if given_up():
                    return None
                time.sleep(POLL_SECONDS)
            return process.returncode
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            assert process.stdin is not None
            process.stdin.close()
