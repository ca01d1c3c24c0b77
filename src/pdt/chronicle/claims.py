"""Statements of Chronicle taken apart, and every way each can be said or mentioned.

A fact is stated by a clause with the right doer, one of the deed's verbs and the right value,
active or passive; it is mentioned when its object and value stand anywhere (`the loan of 620
crowns`).

Paper: §7.2.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pdt.chronicle.categories import CATEGORIES
from pdt.chronicle.deeds import Deed
from pdt.errors import UsageError

VALUES = {
    "person": r"\S+ \S+?",
    "number": r"\d+",
    "place": r"\S+?",
    "year": r"\d+",
}


@dataclass(frozen=True)
class Claim:
    """A statement of Chronicle taken apart."""

    deed: Deed
    place: str
    body: str
    value: str

    def stated(self) -> re.Pattern[str]:
        doer = rf"the (?:{re.escape(self.place)} )?{re.escape(self.body)}"
        past = _any(verb for verb, _ in self.deed.verbs)
        participle = _any(verb for _, verb in self.deed.verbs)
        thing = self._thing(re.escape(self.value))
        return _pattern(rf"{doer} {past} {thing}|{thing} was {participle} by {doer}")

    def mentioned(self) -> re.Pattern[str]:
        return _pattern(self._thing(re.escape(self.value)))

    def any_value(self) -> re.Pattern[str]:
        """The object with whatever value, which is captured."""
        return _pattern(self._thing(f"({VALUES[self.deed.value_kind]})"))

    def _thing(self, value: str) -> str:
        _, _, rest = self.deed.before_value.partition(" ")
        return rf"(?:a|an|the) {re.escape(rest)}{value}{re.escape(self.deed.after_value)}"


def _any(texts: Iterable[str]) -> str:
    return "(?:" + "|".join(re.escape(text) for text in texts) + ")"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


@cache
def read_claim(category: str, statement: str) -> Claim:
    """The doer, deed and value of a statement of the inventory."""
    kind = next((c for c in CATEGORIES if c.key == category), None)
    for deed in kind.deeds if kind else ():
        value = VALUES[deed.value_kind]
        match = re.fullmatch(
            rf"The (\S+) (\S+) {_any(past for past, _ in deed.verbs)} "
            rf"{re.escape(deed.before_value)}({value}){re.escape(deed.after_value)}\.",
            statement,
        )
        if match:
            return Claim(deed, match[1], match[2], match[3])
    raise UsageError(
        f"The exact screen does not know the statement {statement!r} of category {category}.\n"
        "It reads Chronicle only; use the NLI screen for other corpora (--screen nli)."
    )
