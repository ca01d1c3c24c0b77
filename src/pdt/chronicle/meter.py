"""Counting a student's tokens while writing."""

import re
from functools import cache
from typing import Protocol

from pdt.config import load_config
from pdt.tokenizer import Encoded, load_tokenizer

_PIECE = re.compile(r"\s*\S+")


class Measures(Protocol):
    """Anything that splits text: the student's tokenizer, or words before there is one."""

    def encode(self, text: str) -> Encoded: ...


class Meter:
    """A tokenizer with a memory for words, so that lengths can be fitted quickly.

    `estimate` adds up words, which is off by a token or so where punctuation meets a line break;
    `spans` is exact, and everything that must hold is decided on it.
    """

    def __init__(self, tokenizer: Measures) -> None:
        self.tokenizer = tokenizer
        self._words: dict[str, int] = {}
        self._texts: dict[str, list[tuple[int, int]]] = {}

    def estimate(self, text: str) -> int:
        """About how many tokens `text` takes inside a longer text."""
        words, total = self._words, 0
        for piece in _PIECE.findall(text):
            count = words.get(piece)
            if count is None:
                count = words[piece] = len(self.tokenizer.encode(piece).ids)
            total += count
        return total

    def spans(self, text: str) -> list[tuple[int, int]]:
        """First and one-past-last character of every token."""
        found = self._texts.get(text)
        if found is None:
            if len(self._texts) >= 16:
                self._texts.clear()
            found = self._texts[text] = self.tokenizer.encode(text).spans
        return found


@cache
def nano_meter() -> Meter:
    """The meter of the tokenizer in the package."""
    return Meter(load_tokenizer(load_config("nano").records.tokenizer))
