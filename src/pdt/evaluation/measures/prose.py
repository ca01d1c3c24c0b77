"""Prose beyond the long-form rate: repetition, variety, sentence length, what lanes say alike.

Paper: §7.2.
"""

from collections.abc import Sequence

from pdt.evaluation.measures.longform import sentences_of


def repeated_sentences(texts: Sequence[str]) -> float | None:
    """The share of sentences that their own lane has said before, word for word."""
    return _share([s in lane[:n] for lane in _folded(texts) for n, s in enumerate(lane)])


def shared_sentences(texts: Sequence[str]) -> float | None:
    """The share of sentences that a sibling says too, word for word."""
    lanes = _folded(texts)
    return _share(
        [
            any(sentence in other for j, other in enumerate(lanes) if j != k)
            for k, lane in enumerate(lanes)
            for sentence in lane
        ]
    )


def distinct_trigrams(texts: Sequence[str]) -> float | None:
    """Different runs of three words over all runs of three, of the lanes together."""
    runs = [
        tuple(words[n : n + 3])
        for words in (text.casefold().split() for text in texts)
        for n in range(len(words) - 2)
    ]
    return len(set(runs)) / len(runs) if runs else None


def sentence_words(texts: Sequence[str]) -> float | None:
    """Words a sentence, on average."""
    lengths = [len(sentence.split()) for text in texts for sentence in sentences_of(text)]
    return sum(lengths) / len(lengths) if lengths else None


def _folded(texts: Sequence[str]) -> list[list[str]]:
    return [[sentence.casefold() for sentence in sentences_of(text)] for text in texts]


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None
