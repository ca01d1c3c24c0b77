"""Money that cannot be overspent: the worst case of a call is set aside before it is sent.

`ledger.jsonl` is appended under a file lock, so threads and processes share one budget. A call that
may have been billed without an answer (a timeout, a cut reply, a killed process) stays in the books
at its worst case.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from pdt.config import EndpointConfig
from pdt.errors import CorruptFile, PdtError
from pdt.parse import parse_json
from pdt.teacher.call import Call

LEDGER = "ledger.jsonl"
MILLION = 1_000_000
MESSAGE_TOKENS = 16
"""More than any chat template adds around one message."""


class BudgetSpent(PdtError):
    """The next call could cost more than is left."""


def worst_cost(call: Call, endpoint: EndpointConfig, *, share: float = 1.0) -> float:
    """The most this call can cost: every byte sent a token, and a reply up to its ceiling."""
    return cost_of(endpoint, *most_tokens(call, endpoint), share)


def most_tokens(call: Call, endpoint: EndpointConfig) -> tuple[int, int]:
    """Tokens that may be sent and received: no tokenizer makes more than one of a byte."""
    sent = len(json.dumps(call.body, ensure_ascii=False).encode())
    return sent + MESSAGE_TOKENS * len(call.messages), endpoint.max_output_tokens


def cost_of(
    endpoint: EndpointConfig, input_tokens: int, output_tokens: int, share: float = 1.0
) -> float:
    assert endpoint.price_in is not None and endpoint.price_out is not None
    total = input_tokens * endpoint.price_in + output_tokens * endpoint.price_out
    return share * total / MILLION


class Budget:
    """What was spent, what is set aside, and the limit of both together."""

    def __init__(self, ledger: Path, limit: float) -> None:
        self.limit = limit
        self._path = ledger
        self._own: set[str] = set()
        self._changed = threading.Condition()
        self._read_to = 0
        self._lines = 0
        self._held: dict[str, tuple[str, float]] = {}
        self._spent = 0.0
        ledger.parent.mkdir(parents=True, exist_ok=True)
        with self._changed, self._locked():
            pass

    @property
    def spent(self) -> float:
        """Everything paid or possibly paid so far, calls in flight at their worst case."""
        with self._changed, self._locked():
            return self._taken()

    def reserve(self, key: str, worst: float) -> str:
        """Set `worst` aside; waits for calls in flight when only they are in the way."""
        with self._changed:
            while True:
                with self._locked() as ledger:
                    taken = self._taken()
                    if taken + worst <= self.limit:
                        hold = f"{key[:24]}-{self._lines}"
                        self._append(ledger, event="reserve", hold=hold, key=key, cost=worst)
                        self._own.add(hold)
                        return hold
                if self._own and self._spent + worst <= self.limit:
                    self._changed.wait(timeout=1.0)
                    continue
                raise BudgetSpent(
                    f"The budget of {self.limit:g} is used up: {taken:.4f} spent or set aside, and "
                    f"the next call may cost {worst:.4f}.\n"
                    "Every answered call is kept. Raise teacher.budget and run again with --resume."
                )

    def settle(self, hold: str, cost: float) -> None:
        """The call was answered and cost this much."""
        self._close(hold, event="settle", cost=cost)

    def release(self, hold: str, why: str) -> None:
        """The call was not taken: nothing was billed."""
        self._close(hold, event="release", cost=0.0, why=why)

    def lose(self, hold: str, why: str) -> None:
        """The call may have been billed although no whole reply came."""
        with self._changed:
            _, worst = self._held[hold]
        self._close(hold, event="lost", cost=worst, why=why)

    def recover(self, cost_of_reply: Callable[[str], float | None]) -> None:
        """Settle what a killed process held if its reply is on disk; else the worst case stays."""
        with self._changed, self._locked() as ledger:
            for hold, (key, _) in list(self._held.items()):
                if hold not in self._own and (cost := cost_of_reply(key)) is not None:
                    self._append(ledger, event="settle", hold=hold, cost=cost)

    def _taken(self) -> float:
        return self._spent + sum(worst for _, worst in self._held.values())

    def _close(self, hold: str, **entry: Any) -> None:
        with self._changed:
            with self._locked() as ledger:
                self._append(ledger, hold=hold, **entry)
            self._own.discard(hold)
            self._changed.notify_all()

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The ledger, locked against other processes and read to its end."""
        with self._path.open("a+b") as ledger:
            fcntl.flock(ledger, fcntl.LOCK_EX)
            ledger.seek(self._read_to)
            data = ledger.read()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):  # a process died while it wrote; its call was not sent
                ledger.truncate(self._read_to + whole)
            try:
                for line in data[:whole].splitlines():
                    self._apply(parse_json(line))
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptFile(
                    f"{self._path} is not a ledger: {error}.\n"
                    "What was spent is no longer known. Restore it before another call is made."
                ) from error
            self._read_to += whole
            yield ledger

    def _append(self, ledger: IO[bytes], **entry: Any) -> None:
        entry["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        data = json.dumps(entry).encode() + b"\n"
        ledger.write(data)
        ledger.flush()
        os.fsync(ledger.fileno())
        self._read_to += len(data)
        self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        self._lines += 1
        if entry["event"] == "reserve":
            self._held[entry["hold"]] = (entry["key"], entry["cost"])
        elif self._held.pop(entry["hold"], None):
            self._spent += entry["cost"]
