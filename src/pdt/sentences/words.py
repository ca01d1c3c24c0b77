"""What a sentence says, as two sets: its content words, and its values (names and numbers).

Words are compared by a crude stem, so that "directed" and "directs" are one word; values as they
stand, because 1994 and 1995 are two different claims.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_FUNCTION = """
    a about above according after again against all also although am an and another any are as at
    be because been before began being below besides between beyond both but by came can could did
    do does during each few finally first for former from further furthermore had has have he her
    here hers him his how however i if in into is it its itself just later latter made may
    meanwhile might moreover more most much must nor not of off on once one only or other others
    our out over own part same she should since so some still such than that the their them then
    there these they this those though through thus to too under until up upon us very was we were
    what when where whether which while who whom whose why will with within would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Words that carry a sentence and say nothing of what is true in it."""

_OPENING = re.compile(
    r"(?i)^(?:[a-z]+ [^,.]{2,60}, |[a-z]+, )?(?:he|she|it|they|his|her|its|their)\b"
)
"""A sentence that takes its subject from the one before it."""

_WORD = re.compile(r"[^\W_]+(?:[.,:'\u2019&/-][^\W_]+)*")
_NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty
"""
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}


@dataclass(frozen=True)
class Said:
    """One sentence as sets."""

    words: frozenset[str]
    """Stems of its content words, values among them."""
    values: frozenset[str]
    """Names (capital letters, the first word's too) and numbers."""
    opens_with_pronoun: bool


@lru_cache(maxsize=1 << 15)
def said(sentence: str, *, whole: bool = False) -> Said:
    """The sets of a sentence; what stands in parentheses counts only in a `whole` one."""
    text = sentence if whole else without_parentheses(sentence)
    words: set[str] = set()
    values: set[str] = set()
    found = _WORD.findall(text)
    for word in found:
        plain = _plain(word)
        small = plain.casefold()
        if any(c.isdigit() for c in plain) or small in _NUMBER_WORDS:
            value = _NUMBER_WORDS.get(small, small.replace(",", ""))
            if small != "one":
                words.add(value)
                values.add(value)
        elif small not in FUNCTION_WORDS or plain == "May":
            words.add(stem(small))
            if plain[0].isupper():
                values.add(stem(small))
    return Said(frozenset(words), frozenset(values), _OPENING.match(text) is not None)


def without_parentheses(text: str) -> str:
    """The text without what stands in round brackets, however they are nested."""
    before = None
    while before != text:
        before, text = text, re.sub(r"\s*\([^()]*\)", "", text)
    return re.sub(r"\s+([,.;:])", r"\1", " ".join(text.split()))


def _plain(word: str) -> str:
    return re.sub(r"['\u2019]s$", "", word)


def stem(word: str) -> str:
    """A word without its commonest endings."""
    for ending in ("ies", "ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word
