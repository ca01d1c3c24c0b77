"""Jobs in processes: in order, and never silent about a worker that fails, dies or cannot start."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pdt.errors import ContractBroken, PdtError, SourceRefused
from pdt.jobs import run_jobs

IN_PROC = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")


def do(start: Callable[[], Callable[[int], object]], jobs: int, workers: int = 2) -> list[object]:
    return list(
        run_jobs(start, range(jobs), workers=workers, doing="counted", remedy="Count again.")
    )


def the_first_is_last(flag: Path) -> Callable[[int], int]:
    def work(number: int) -> int:
        while number == 0 and not flag.exists():
            time.sleep(0.01)
        if number == 3:
            flag.touch()
        return number * number

    return work


def test_results_come_in_order_and_progress_as_jobs_end(tmp_path: Path) -> None:
    heard: list[int] = []
    results = run_jobs(
        partial(the_first_is_last, tmp_path / "flag"),
        range(6),
        workers=2,
        doing="",
        remedy="",
        progress=lambda number, result: heard.append(number),
    )
    assert list(results) == [0, 1, 4, 9, 16, 25]
    assert sorted(heard) == [0, 1, 2, 3, 4, 5]
    assert heard.index(0) > heard.index(2), "the first job ended after the third"


def process_of() -> Callable[[int], int]:
    return lambda number: os.getpid()


def test_no_more_processes_are_started_than_there_are_jobs() -> None:
    assert do(process_of, 0) == []
    assert len(set(do(process_of, 1, workers=64))) == 1


def test_a_job_is_taken_when_a_worker_is_free() -> None:
    held = 0

    def jobs() -> Iterator[int]:
        nonlocal held
        for number in range(20):
            held += 1
            assert held <= 2, "one for each worker"
            yield number

    def ended(number: int, result: int) -> None:
        nonlocal held
        held -= 1

    results = run_jobs(process_of, jobs(), workers=2, doing="", remedy="", progress=ended)
    assert len(list(results)) == 20


def refuses(number: int) -> None:
    if number == 1:
        raise SourceRefused("page 1", "is empty", "Take another.")


def refusing() -> Callable[[int], None]:
    return refuses


def test_a_refusal_of_a_worker_is_raised_in_its_words() -> None:
    with pytest.raises(SourceRefused) as refused:
        do(refusing, 3)
    assert str(refused.value) == "page 1 is empty.\nTake another."
    assert "in refuses" in refused.value.__notes__[0], "and says where it arose"


def cannot_start() -> Callable[[int], None]:
    raise ContractBroken("There is no model.", "Make one.")


def test_a_worker_that_cannot_start_says_why() -> None:
    with pytest.raises(ContractBroken, match="There is no model"):
        do(cannot_start, 3)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_at_work(ended: Path) -> Callable[[int], None]:
    def work(number: int) -> None:
        if number == 1:
            die()
        time.sleep(5)
        ended.touch()

    return work


def dying_at_start(ended: Path) -> Callable[[int], None]:
    die()
    raise AssertionError


@pytest.mark.parametrize("start", [dying_at_work, dying_at_start])
def test_a_worker_that_dies_is_said_and_stops_the_others(
    start: Callable[[Path], Callable[[int], None]], tmp_path: Path
) -> None:
    with pytest.raises(PdtError) as refused:
        do(partial(start, tmp_path / "ended"), 4)
    said = "A worker died while it counted; perhaps memory ran out.\nCount again."
    assert str(refused.value) == said
    assert not (tmp_path / "ended").exists()


def much(ballast: bytes) -> Callable[[int], None]:
    return refuses


@IN_PROC
@pytest.mark.parametrize("ballast", [0, 4_000_000], ids=["handed little", "handed much"])
def test_a_worker_that_is_killed_while_the_pool_still_starts_hangs_nothing(ballast: int) -> None:
    """Every worker, as soon as its process is there."""
    over = threading.Event()

    def kill() -> None:
        tasks = Path("/proc/self/task")
        while not over.is_set():
            for child in (tasks / str(os.getpid()) / "children").read_text().split():
                try:
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                        os.kill(int(child), signal.SIGKILL)
                except (FileNotFoundError, ProcessLookupError):
                    continue

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(PdtError, match="A worker died"):
            do(partial(much, bytes(ballast)), 8, workers=4)
    finally:
        over.set()
        killer.join()


def test_an_interrupt_ends_all_and_only_the_parent_speaks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            from pathlib import Path
            from pdt.jobs import run_jobs

            def sleep(number):
                Path(sys.argv[1], str(number)).touch()
                time.sleep(300)

            def sleeping():
                return sleep

            if __name__ == "__main__":
                try:
                    list(run_jobs(sleeping, range(2), workers=2, doing="", remedy=""))
                except KeyboardInterrupt:
                    print("interrupted")
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    while not ((tmp_path / "0").exists() and (tmp_path / "1").exists()):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert said == "interrupted\n"
