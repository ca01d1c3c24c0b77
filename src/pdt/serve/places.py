"""Who waits, and whose turn is next: keys take turns, each key's documents in their order."""

import threading
from collections import OrderedDict, deque

from pdt.serve.limits import Limits
from pdt.serve.writing import Writing
from pdt.web.refusals import Refusal

RETRY = {"retry-after": "5"}


class Places:
    """Counts every document from before its text is read until its end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, deque[Writing]] = OrderedDict()
        self._under_way: dict[str, int] = {}
        self.closed = False

    def reserve(self, holder: str) -> None:
        """A place for one more document, or a refusal that says when to come again."""
        with self._lock:
            if self.closed:
                raise Refusal(503, "The server is about to stop. Ask another one.", headers=RETRY)
            under_way = sum(self._under_way.values())
            if under_way >= self._limits.documents + self._limits.waiting:
                raise Refusal(
                    503,
                    f"{under_way} documents are under way, as many as this server takes.",
                    code="queue_full",
                    headers=RETRY,
                )
            own = self._under_way.get(holder, 0)
            if own >= self._limits.share:
                raise Refusal(
                    429,
                    f"{own} documents of this key are under way, as many as one key may have.",
                    code="too_many_documents",
                    headers=RETRY,
                )
            self._under_way[holder] = own + 1

    def release(self, holder: str) -> None:
        with self._lock:
            self._under_way[holder] -= 1
            if not self._under_way[holder]:
                del self._under_way[holder]

    def wait(self, writing: Writing) -> None:
        with self._lock:
            self._waiting.setdefault(writing.holder, deque()).append(writing)

    def next(self) -> Writing | None:
        """The key that has waited longest for a turn gives its first document."""
        with self._lock:
            if not self._waiting:
                return None
            holder, own = self._waiting.popitem(last=False)
            first = own.popleft()
            if own:
                self._waiting[holder] = own
            return first

    def withdraw(self, writing: Writing) -> bool:
        """Whether it was still waiting."""
        with self._lock:
            own = self._waiting.get(writing.holder, deque())
            if writing not in own:
                return False
            own.remove(writing)
            if not own:
                del self._waiting[writing.holder]
            return True

    @property
    def waiting(self) -> int:
        with self._lock:
            return sum(map(len, self._waiting.values()))

    @property
    def under_way(self) -> int:
        with self._lock:
            return sum(self._under_way.values())
