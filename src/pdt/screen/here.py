"""Runs in processes of this machine, some at a time.

datatrove's local executor is not used: its pool waits for ever for a worker that was killed.

Paper: Appendix A.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from pdt.screen.place import Place
from pdt.screen.supervise import Outcome, supervise


def run_here(
    place: Place,
    runs: Sequence[str],
    *,
    workers: int,
    gpus: int = 0,
    told: Callable[[str], None] = lambda text: None,
) -> dict[str, Outcome]:
    """The outcome of every run; interrupted, all processes end and the same command goes on."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    given_up = threading.Event()

    def one(run: str) -> Outcome:
        if given_up.is_set() or place.stop_asked:
            return Outcome.STOPPED
        told(f"{run}: begins")
        outcome = supervise(place, run, gpus=gpus, given_up=given_up.is_set, told=told)
        told(f"{run}: {outcome}")
        return outcome

    with ThreadPoolExecutor(max_workers=workers) as pool:
        doing: dict[Future[Outcome], str] = {pool.submit(one, run): run for run in runs}
        try:
            left = set(doing)
            while left:
                _, left = wait(left, timeout=1, return_when=FIRST_COMPLETED)
        except BaseException:
            given_up.set()
            raise
    return {run: future.result() for future, run in doing.items()}
