"""Hard negatives: a claim with one name, date or number replaced by another that fits there.

Paper: §4.2, Stage A.
"""

import random
import re
from collections.abc import Iterator, Sequence

from pdt.teacher.checks.facts import fold
from pdt.teacher.facts import HardNegative
from pdt.terms import Alteration

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-3][0-9])\b")
_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b")
_NUMBER = re.compile(r"(?<![\w.,/-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w/-]|[.,]\d)")
_TITLES = {
    "Mrs", "Inc", "Ltd", "Jr", "St", "Dr", "Mr", "Sir", "The", "It", "He", "She", "Park", "Sea",
}  # fmt: skip
_CAPITAL = "A-Z\u00c0-\u00de"
_NAME = re.compile(
    rf"\b[{_CAPITAL}][\w'\u2019-]*\w(?: (?:of|de|the|van|von|and) (?=[{_CAPITAL}])[\w'\u2019-]+| "
    rf"[{_CAPITAL}][\w'\u2019-]*\w)*"
)


def has_value(statement: str) -> bool:
    """Is there a date, a number or a name behind the first word?"""
    return bool(_YEAR.search(statement) or _NUMBER.search(statement) or names_in(statement))


def is_dated(statement: str) -> bool:
    return bool(_YEAR.search(statement) or _MONTH.search(statement))


def is_counted(statement: str) -> bool:
    """Holds a number that is no year."""
    return any(not _YEAR.fullmatch(found[0]) for found in _NUMBER.finditer(statement))


def names_in(statement: str) -> list[str]:
    """Names behind the first word of a sentence."""
    found = [re.sub(r"['\u2019]s$", "", m[0]) for m in _NAME.finditer(statement) if m.start() > 0]
    return [
        name
        for name in found
        if len(name) > 2
        and name not in MONTHS
        and name not in _TITLES
        and not name.startswith("The ")
    ]


def altered(
    stream: random.Random, statement: str, others: Sequence[str], source: str
) -> HardNegative | None:
    """One false neighbour of the statement that the source does not say, or None."""
    folded = fold(source)
    options = list(_options(stream, statement, others))
    stream.shuffle(options)
    kinds = list(dict.fromkeys(alters for alters, _, _ in options))
    stream.shuffle(kinds)
    for alters, original, replacement in sorted(options, key=lambda option: kinds.index(option[0])):
        false = statement.replace(original, replacement)
        if false != statement and fold(original) != fold(replacement) and fold(false) not in folded:
            return HardNegative(
                statement=false, alters=alters, original=original, replacement=replacement
            )
    return None


def _options(
    stream: random.Random, statement: str, others: Sequence[str]
) -> Iterator[tuple[Alteration, str, str]]:
    for found in _YEAR.finditer(statement):
        step = stream.choice([-1, 1]) * stream.randrange(1, 20)
        yield Alteration.DATE, found[0], str(min(2024, int(found[0]) + step))
    for found in _MONTH.finditer(statement):
        month = stream.choice([month for month in MONTHS if month != found[0]])
        yield Alteration.DATE, found[0], month
    for found in _NUMBER.finditer(statement):
        if not _YEAR.fullmatch(found[0]):
            yield Alteration.QUANTITY, found[0], _other_number(stream, found[0])
    mine = names_in(statement)
    pool = [name for name in others if not set(name.split()) & set(statement.split())]
    for name in mine:
        like = [other for other in pool if len(other.split()) == len(name.split())] or pool
        if like and f" {name}" in statement:
            yield Alteration.ENTITY, name, stream.choice(like)


def _other_number(stream: random.Random, text: str) -> str:
    """A number of as many digits, written in the same way."""
    digits = [c for c in text if c.isdigit()]
    place = stream.randrange(len(digits))
    first = place == 0 and len(digits) > 1
    digits[place] = stream.choice([d for d in "0123456789"[first:] if d != digits[place]])
    found = iter(digits)
    return "".join(next(found) if c.isdigit() else c for c in text)
