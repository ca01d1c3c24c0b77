"""The exact screen for Chronicle: it knows every way a fact can be said, so it is never in doubt.

Paper: §7.2 (a screen beside the NLI cross-encoder, for a corpus whose world state is known).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

from pdt.chronicle.claims import Claim, read_claim
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.measures.longform import one_spaced, sentence_starts
from pdt.evaluation.screens.screen import ScreenChoice

_PARTY = re.compile(r"\b[Tt]he ([A-Z][a-z]+) ([a-z]+)\b")
"""Whoever a text says has acted: the Oldham council."""


class ExactScreen:
    """Judges Chronicle documents."""

    name: ClassVar[str] = "exact"
    calibrated: ClassVar[bool] = False
    calibration = None

    @classmethod
    def opened(cls, choice: ScreenChoice) -> "ExactScreen | None":
        return cls() if choice.name == cls.name else None

    def judge(self, document: HeldOutDocument, lanes: Sequence[str]) -> LaneFacts:
        """Which facts each physical lane states or mentions, where, and which falsehoods."""
        texts = [_Text(text) for text in lanes]
        stated, mentioned, false, altered, wrong, places = [], [], [], [], [], []
        for fact in document.facts:
            claim = read_claim(document.category, fact.statement)
            negative = read_claim(document.category, fact.hard_negative)
            says, names, lies = claim.stated(), claim.mentioned(), negative.stated()
            other = claim.any_value()
            stated.append([bool(says.search(text.plain)) for text in texts])
            mentioned.append([bool(names.search(text.plain)) for text in texts])
            false.append([bool(lies.search(text.plain)) for text in texts])
            altered.append(
                [
                    any(
                        m[1].casefold() != claim.value.casefold()
                        for m in other.finditer(text.plain)
                    )
                    for text in texts
                ]
            )
            wrong.append([text.credits_another(claim) for text in texts])
            places.append([text.sentence_of(names) for text in texts])
        return LaneFacts.of_facts(stated, mentioned, false, altered, wrong, places)


class _Text:
    """A lane's text with its sentences and whoever acts in it."""

    def __init__(self, text: str) -> None:
        self.plain = one_spaced(text)
        self._starts = sentence_starts(text)
        self._parties = set(_PARTY.findall(self.plain))

    def sentence_of(self, pattern: re.Pattern[str]) -> int:
        """Where the sentence of the first match begins; -1 without one."""
        found = pattern.search(self.plain)
        return -1 if found is None else self._starts[bisect_right(self._starts, found.start()) - 1]

    def credits_another(self, claim: Claim) -> bool:
        """Does it say that someone else did it, value and all?"""
        if not claim.mentioned().search(self.plain):
            return False
        right = (claim.place.casefold(), claim.body.casefold())
        return any(
            _stated_by(claim, place, body).search(self.plain)
            for place, body in self._parties
            if (place.casefold(), body) != right
        )


@lru_cache(maxsize=4096)
def _stated_by(claim: Claim, place: str, body: str) -> re.Pattern[str]:
    """The claim with this doer; where only the place is wrong, the place must be said."""
    if body == claim.body.casefold():
        return replace(claim, place="", body=f"{place} {body}").stated()
    return replace(claim, place=place, body=body).stated()
