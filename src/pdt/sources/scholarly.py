"""Is a cited work scholarly or institutional, and why. The rule is `data/scholarly.yaml`.

Paper: Table 1.
"""

import re
from functools import cache

from pdt.sources.data import published
from pdt.sources.works import Work


def scholarly_reason(work: Work) -> str | None:
    """The first reason that holds, in the order of the published list, or None."""
    rules = published("scholarly")
    for identifier in work.identifiers:
        if reason := rules["identifiers"].get(identifier.partition(":")[0]):
            return reason
    if reason := rules["kinds"].get(work.kind):
        return reason
    for place, texts in (
        ("publishers", (work.publisher,)),
        ("containers", (work.container,)),
        ("hosts", work.hosts),
    ):
        for text in texts:
            if text and (reason := _match(place, text)):
                return f"{reason}: {text}"
    # A citation typed by hand has no fields; its text names publisher and journal.
    for place in ("publishers", "containers"):
        if reason := _match(place, work.text):
            return f"{reason}, in its text"
    return None


def _match(place: str, text: str) -> str | None:
    for pattern, reason in _patterns(place):
        if pattern.search(text):
            return reason
    return None


@cache
def _patterns(place: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.I), why) for pattern, why in published("scholarly")[place]]
