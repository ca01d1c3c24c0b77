"""Jobs shared out among processes: results in the order of the jobs, whoever did them and when.

A worker is a process with a pipe of its own, and it is handed one job at a time. Workers share no
lock and no queue, so one that is killed at any moment, even while others are still being started,
is seen at once: its pipe ends.
"""

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from pdt.errors import PdtError

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_jobs(
    start: Callable[[], Callable[[Job], Result]],
    jobs: Iterable[Job],
    *,
    workers: int,
    doing: str,
    remedy: str,
    progress: Callable[[int, Result], None] = lambda number, result: None,
) -> Iterator[Result]:
    """Every job's result in order; `progress` hears of each, with the job's number, as it comes.

    `start` is called once in every worker and gives what does a job there. An error of a worker
    stops all of them, each after the job it has; it is raised here. A worker that dies is refused
    as one that was `doing` something, with a `remedy`.
    """
    rest = enumerate(jobs)
    first = list(islice(rest, workers))
    waiting = chain(first, rest)
    pool: list[_Worker] = []
    results: dict[int, Result] = {}
    due = 0
    try:
        pool.extend(_Worker() for _ in first)
        for worker in pool:
            worker.send(start)
        busy: dict[object, tuple[_Worker, int | None]] = {w.pipe: (w, None) for w in pool}
        while busy:
            for pipe in wait([worker.pipe for worker, _ in busy.values()]):
                worker, number = busy.pop(pipe)
                outcome = worker.receive()
                if number is not None:  # else it says that it is ready
                    results[number] = outcome
                    progress(number, outcome)
                for number, job in islice(waiting, 1):
                    worker.send(job)
                    busy[pipe] = worker, number
            while due in results:
                yield results.pop(due)
                due += 1
    except _Died:
        for worker in pool:
            worker.process.terminate()
            worker.process.join()
        # Ctrl-C reaches the whole group: a worker may be gone before it is heard of here.
        if any(worker.process.exitcode == -signal.SIGINT for worker in pool):
            raise KeyboardInterrupt from None
        message = f"A worker died while it {doing}; perhaps memory ran out.\n{remedy}"
        raise PdtError(message) from None
    finally:
        for worker in pool:
            worker.pipe.close()
        for worker in pool:
            worker.process.join()


class _Died(Exception):
    """The other end of a worker's pipe is gone."""


class _Worker:
    """A process that has been told nothing yet, and the parent's end of its pipe.

    Even what it starts with is sent over the pipe: `Process.start` would wait for ever to hand much
    to a process that is killed before it reads.
    """

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, value: object) -> None:
        try:
            self.pipe.send(value)
        except ConnectionError:
            raise _Died from None

    def receive(self) -> Any:
        """What the worker says, or its error raised here."""
        try:
            said = self.pipe.recv()
        except (EOFError, OSError):  # it may have ended in the middle of a word
            raise _Died from None
        if isinstance(said, _Failure):
            raise said.error()
        return said


def _work(pipe: Connection) -> None:
    """A worker's life: say that it is ready, then do what it is handed until the pipe ends."""
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent speaks for all
    try:
        do = _tried(lambda: pipe.recv()())
        pipe.send(do if isinstance(do, _Failure) else None)
        while True:
            job = pipe.recv()
            pipe.send(_tried(do, job))
    except (EOFError, ConnectionError):
        return


@dataclass(frozen=True)
class _Failure:
    """A worker's error as values: not every error survives being pickled."""

    kind: type[Exception]
    message: str
    trace: str

    def error(self) -> Exception:
        """The error again; its constructor may want more than the message."""
        error = self.kind.__new__(self.kind)
        error.args = (self.message,)
        error.add_note(f"In a worker:\n{self.trace}")
        return error


def _tried(do: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return do(*arguments)
    except Exception as error:
        return _Failure(type(error), str(error), traceback.format_exc())


def _end_with_parent() -> None:
    """A killed command leaves no process behind that could write beside its successor."""
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
