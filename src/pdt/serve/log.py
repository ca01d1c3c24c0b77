"""A document's events in order, for as many readers as there are, from wherever each begins.

One thread adds, the connections' thread reads. A reader has a place of its own, so a slow one
holds back neither the writer nor another reader, and one that was cut off comes back to its place.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class EventLog(Generic[Entry]):
    """Append-only, with an end."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ended = False
        self._waiting: set[asyncio.Event] = set()

    def add(self, entry: Entry) -> None:
        """By the writing thread, which asks for `wake` on the readers' thread when it is done."""
        self.entries.append(entry)

    def end(self) -> None:
        self.ended = True

    def wake(self) -> None:
        """On the readers' thread: there is something new."""
        for event in self._waiting:
            event.set()

    async def follow(
        self, start: int = 0, *, pulse: float | None = None
    ) -> AsyncIterator[tuple[int, Entry] | None]:
        """Entries with their places, until the end; None after every `pulse` seconds of silence."""
        at = max(0, start)
        while True:
            while at < len(self.entries):
                yield at, self.entries[at]
                at += 1
            if self.ended and at >= len(self.entries):
                return
            event = asyncio.Event()
            self._waiting.add(event)
            try:
                # What came between the look above and now would otherwise be slept through.
                if at < len(self.entries) or self.ended:
                    continue
                await asyncio.wait_for(event.wait(), pulse)
            except TimeoutError:
                yield None
            finally:
                self._waiting.discard(event)
