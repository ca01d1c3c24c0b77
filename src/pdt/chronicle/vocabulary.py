"""The text that Chronicle's own tokenizer is made from."""

from collections.abc import Iterator

from pdt.chronicle.dials import MOST_BITS, turn_dials
from pdt.chronicle.document import Chronicle
from pdt.chronicle.meter import Meter
from pdt.chronicle.tokenizer import WordTokenizer, build_tokenizer
from pdt.terms import Split

DOCUMENTS = 1500
"""Of each split; far more than it takes to meet every word."""


def nano_texts(count: int = DOCUMENTS) -> Iterator[str]:
    """Every kind of nano text, with every number of coined bits, measured in words."""
    kinds = (
        [f"bits={list(range(1, MOST_BITS + 1))}"],
        [f"bits={list(range(1, MOST_BITS))}", "coins=2", "cue_first=true"],
    )
    for dials in (turn_dials("nano", kind) for kind in kinds):
        for split in Split:
            for document in Chronicle(0, split, dials, Meter(WordTokenizer())).documents(count):
                taught = document.taught
                yield taught.article.text
                yield taught.answer.request
                yield from (section.text for section in taught.answer.sections)


def nano_tokenizer(*, most: int) -> str:
    """The tokenizer.json in the package, made again."""
    return build_tokenizer(nano_texts(), most=most)
