"""One process at a time works in a run directory; the lock ends as the process does."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pdt.errors import UsageError

LOCK = "run.lock"


@contextmanager
def hold_run(
    run: Path,
    doing: str = "training",
    remedy: str = "See `pdt train status`; choose another --out, or wait for it to end.",
) -> Iterator[None]:
    """Hold the run's directory, or refuse when another process does."""
    with (run / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"Another process is {doing} in {run}.\n{remedy}") from error
        yield


@contextmanager
def wait_for_run(run: Path) -> Iterator[None]:
    """Hold the run's directory as soon as no other process does."""
    with (run / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_held(run: Path) -> bool:
    """Is some process at work there now?"""
    if not (run / LOCK).is_file():
        return False
    with (run / LOCK).open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
