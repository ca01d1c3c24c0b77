"""Chronicle as a teacher of its own bundles: it draws the world again and reads it off.

Paper: §4.2.
"""

import re
from functools import lru_cache

from pdt.chronicle.dials import Dials
from pdt.chronicle.document import Chronicle
from pdt.chronicle.meter import Meter
from pdt.errors import ContractBroken
from pdt.teacher.answer import Answer
from pdt.teacher.document import TaughtBy, TaughtDocument
from pdt.teacher.facts import FactInventory
from pdt.teacher.interface import Attempt, Taught, TeachingSource
from pdt.terms import Split

_ID = re.compile(r"chronicle-(?P<size>[a-z]+)-(?P<split>[a-z]+)-(?P<seed>-?\d+)-(?P<index>\d+)")


class ChronicleTeacher:
    """Knows the answer of every source that Chronicle wrote with these dials."""

    def __init__(self, dials: Dials, meter: Meter) -> None:
        self.dials = dials
        self.meter = meter
        self._last = lru_cache(maxsize=64)(self._draw)

    def extract_facts(self, source: TeachingSource) -> Taught[FactInventory]:
        return Taught(self._document(source).inventory)

    def compose_answer(self, source: TeachingSource, inventory: FactInventory) -> Taught[Answer]:
        return Taught(self._document(source).answer)

    def identity(self, source: TeachingSource, attempts: tuple[Attempt, ...]) -> TaughtBy:
        return self._document(source).teacher

    def _document(self, source: TeachingSource) -> TaughtDocument:
        document = self._last(source.record_id)
        if document.article != source.article:
            raise ContractBroken(
                f"{source.record_id} is not the article that Chronicle writes for this id.",
                "Its dials differ, or its bundle was cleaned in another way. Write the bundles "
                "again with `pdt chronicle write --bundles`.",
            )
        return document

    def _draw(self, record_id: str) -> TaughtDocument:
        found = _ID.fullmatch(record_id)
        if found is None or found["size"] != self.dials.size:
            raise ContractBroken(
                f"{record_id!r} is no Chronicle id of size {self.dials.size}.",
                "Chronicle teaches its own bundles only; choose another teacher.kind.",
            )
        chronicle = Chronicle(int(found["seed"]), Split(found["split"]), self.dials, self.meter)
        return chronicle.document(int(found["index"])).taught
