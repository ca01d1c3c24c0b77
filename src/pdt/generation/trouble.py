"""Text that is of no use, seen by its form alone: a lane that repeats itself, or writes nothing.

Whether a text is right is a question for an evaluation; that it has become a loop is not.
"""

from pdt.generation.events import Section

LEAST = 24
"""Tokens below which nobody can tell."""
LEAST_LOOP, LONGEST_LOOP, TIMES = 16, 64, 4
"""Tokens of a loop altogether, the longest that is looked for, and how often it comes round."""
NGRAM, LEAST_DISTINCT = 4, 0.5


def trouble_of(section: Section) -> str | None:
    """What is wrong with a lane's text, in two words; None where nothing is."""
    words = len("".join(section.text.split()))
    if section.tokens and words == 0:
        return "is blank"
    if len(section.tokens) < LEAST:
        return None
    if words < len(section.tokens) // 2:
        return "is mostly blank"
    return "repeats itself" if _loops(section.tokens) or _circles(section.tokens) else None


def _loops(tokens: tuple[int, ...]) -> bool:
    """Does one run of tokens follow itself, several times over, anywhere?"""
    for period in range(1, min(LONGEST_LOOP, len(tokens) // TIMES) + 1):
        needed, same = max(LEAST_LOOP, TIMES * period) - period, 0
        for earlier, token in zip(tokens, tokens[period:], strict=False):
            same = same + 1 if token == earlier else 0
            if same >= needed:
                return True
    return False


def _circles(tokens: tuple[int, ...]) -> bool:
    """Was most of it said before, in the same words?"""
    if len(tokens) < 2 * LEAST:
        return False
    runs = [tokens[at : at + NGRAM] for at in range(len(tokens) - NGRAM + 1)]
    return len(set(runs)) < LEAST_DISTINCT * len(runs)
