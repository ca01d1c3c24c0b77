"""Documents by id: those under way, and the last ones that ended, for who comes back to them."""

import threading
from collections import OrderedDict

from pdt.serve.limits import Limits
from pdt.serve.writing import Writing
from pdt.web.refusals import Refusal


class Kept:
    """Bounded: the oldest that have ended are forgotten first."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._all: OrderedDict[str, Writing] = OrderedDict()

    def add(self, writing: Writing) -> None:
        with self._lock:
            self._all[writing.id] = writing
            self._forget()

    def find(self, name: str, holder: str) -> Writing:
        """One of this key's own; another key's is as unknown as one that never was."""
        with self._lock:
            found = self._all.get(name)
        if found is None or found.holder != holder:
            raise Refusal(
                404,
                "There is no such generation, or it has been forgotten: "
                f"the last {self._limits.kept} are kept while the server runs.",
                code="generation_not_found",
            )
        return found

    def of(self, holder: str) -> list[Writing]:
        """Newest first."""
        with self._lock:
            return [one for one in reversed(self._all.values()) if one.holder == holder]

    def forget(self, writing: Writing) -> None:
        with self._lock:
            self._all.pop(writing.id, None)

    def _forget(self) -> None:
        ended = [one for one in self._all.values() if one.ended]
        sizes = [len(one.log.entries) for one in ended]
        count, total = len(ended), sum(sizes)
        for one, size in zip(ended, sizes, strict=True):
            if count <= self._limits.kept and total <= self._limits.kept_events:
                return
            del self._all[one.id]
            count, total = count - 1, total - size
