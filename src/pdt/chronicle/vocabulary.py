"""The texts that Chronicle's own tokenizers are made from."""

from collections.abc import Iterator, Sequence

from pdt.chronicle.dials import MOST_BITS, turn_dials
from pdt.chronicle.document import Chronicle
from pdt.chronicle.meter import Meter
from pdt.chronicle.tokenizer import WordTokenizer, build_tokenizer
from pdt.terms import Split

DOCUMENTS = 500
"""Of each split; twice what it takes to meet every word."""
NANO = (
    (f"bits={list(range(1, MOST_BITS + 1))}",),
    (f"bits={list(range(1, MOST_BITS))}", "coins=2", "cue_first=true"),
)
"""Every kind of nano text, with every number of coined bits."""
PARTS = (
    "names=parts",
    "cue_first=true",
    "cue_share=0.5",
    "facts={min: 6, max: 20}",
    "divisions=[phase, theme, party, dealt]",
    "other_facts=6",
    "asides=3",
    "fact_nodes=8",
    "source_tokens={min: 60, max: 900}",
    "section_tokens={min: 16, max: 400}",
)
NANO_2 = (
    (*PARTS, f"bits={list(range(1, MOST_BITS + 1))}", "lags=[1,2,3,4]"),
    (*PARTS, f"bits={list(range(1, MOST_BITS))}", "coins=2", "openings=false"),
)
KINDS = {"nano": NANO, "nano-2": NANO_2}


def texts_of(kinds: Sequence[Sequence[str]], count: int = DOCUMENTS) -> Iterator[str]:
    """Sources, requests and sections of each kind, measured in words."""
    for dials in (turn_dials("nano", kind) for kind in kinds):
        for split in Split:
            for document in Chronicle(0, split, dials, Meter(WordTokenizer())).documents(count):
                taught = document.taught
                yield taught.article.text
                yield taught.answer.request
                yield from (section.text for section in taught.answer.sections)


def make_tokenizer(name: str, *, most: int) -> str:
    """A tokenizer.json of the package, made again."""
    return build_tokenizer(texts_of(KINDS[name]), most=most, parts=name != "nano")
