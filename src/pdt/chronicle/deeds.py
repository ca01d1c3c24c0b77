"""What a party can do: the kinds of fact a Chronicle world is made of.

A deed belongs to one phase (before, during, after) and one theme (people, supplies, places); who
did it is drawn with the world. Its object puts a cue word right before the value, always the same
way, so that a reader can copy the value from the source: `a loan of 620 crowns`.

The deeds themselves are data, in `deeds.txt`.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources

VALUE_KINDS = ("person", "number", "place", "year")


class Phase(IntEnum):
    BEFORE = 0
    DURING = 1
    AFTER = 2


class Theme(IntEnum):
    PEOPLE = 0
    SUPPLIES = 1
    PLACES = 2


@dataclass(frozen=True, slots=True)
class Deed:
    """One kind of fact."""

    cue: str
    """The word that names it in a plan; unique in Chronicle."""
    phase: Phase
    theme: Theme
    value_kind: str
    """person, number, place or year."""
    before_value: str
    after_value: str
    verbs: tuple[tuple[str, str], ...]
    """Past and participle; the verbs of one deed mean the same."""
    reason: str
    result: str
    shared: bool
    """Open to every category, or to one only."""

    def object_with(self, value: str) -> str:
        return f"{self.before_value}{value}{self.after_value}"

    def definite_with(self, value: str) -> str:
        """The object when the reader already knows of it: the loan of 620 crowns."""
        article, _, rest = self.before_value.partition(" ")
        assert article in ("a", "an", "the"), self
        return f"the {rest}{value}{self.after_value}"


@cache
def deeds_of(key: str) -> tuple[Deed, ...]:
    """The deeds of one category of `deeds.txt`, or the `shared` ones."""
    text = (resources.files("pdt.chronicle") / "deeds.txt").read_text(encoding="utf-8")
    deeds, section, phase, theme = [], "", Phase.BEFORE, Theme.PEOPLE
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("="):
            section = line.removeprefix("= ")
        elif line.startswith("@"):
            _, first, second = line.split()
            phase, theme = Phase[first], Theme[second]
        elif section == key:
            deeds.append(_parse(line, phase, theme, shared=key == "shared"))
    return tuple(deeds)


def _parse(row: str, phase: Phase, theme: Theme, *, shared: bool) -> Deed:
    thing, verbs, reason, result = (part.strip() for part in row.split("|"))
    kind = next(kind for kind in VALUE_KINDS if f"<{kind}>" in thing)
    before, after = thing.split(f"<{kind}>")
    pairs = [verb.strip().partition("/") for verb in verbs.split(",")]
    return Deed(
        cue=before.split()[1],
        phase=phase,
        theme=theme,
        value_kind=kind,
        before_value=before,
        after_value=after,
        verbs=tuple((past, participle or past) for past, _, participle in pairs),
        reason=reason,
        result=result,
        shared=shared,
    )
