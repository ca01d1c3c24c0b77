"""Asides that say where a thing is told and not what is true: house style may put them in."""

import re

TOLD_IN = ("according to the", "as told in the", "as given in the", "as listed in the")
"""What leads to a word for the source."""
ONE_OF_OURS, ONE_OF_THE = "one of our", "one of the"
"""What leads to a word for the subjects, or to their number."""

_ASIDE = re.compile(
    rf", (?:(?:{'|'.join(TOLD_IN)}) \w+(?: \w+)?|{ONE_OF_OURS} \w+ here|{ONE_OF_THE} \w+ notes)"
    r"(?=[,.])(?:,(?= \w))?"
)


def without_asides(sentence: str) -> str:
    """The sentence without its asides."""
    return _ASIDE.sub("", sentence)
