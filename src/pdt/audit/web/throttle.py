"""Guessing passphrases is slow: after some failures a name waits, after many everybody."""

import threading
import time
from collections import deque

from pdt.web.refusals import Refusal

WINDOW = 600.0
FAILURES_OF_A_NAME, FAILURES_OF_ALL = 6, 100


class Throttle:
    """Failures of the last minutes, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed: deque[tuple[float, str]] = deque()

    def check(self, name: str) -> None:
        with self._lock:
            since = time.monotonic() - WINDOW
            while self._failed and self._failed[0][0] < since:
                self._failed.popleft()
            mine = sum(failed == name for _, failed in self._failed)
            if mine >= FAILURES_OF_A_NAME or len(self._failed) >= FAILURES_OF_ALL:
                raise Refusal(
                    429,
                    "Too many attempts. Wait ten minutes, or ask the operator for an invitation.",
                    headers={"retry-after": str(int(WINDOW))},
                )

    def failed(self, name: str) -> None:
        with self._lock:
            self._failed.append((time.monotonic(), name))
