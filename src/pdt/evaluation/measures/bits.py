"""Bits: what a receiver got of a coined choice, and whether owner and receiver say the same word.

A choice is one of 2^h words, uniformly. The cross entropy of the receiver's distribution over those
words bounds what reached it: h minus it, no more than was really sent and never more than h.

Paper: §7.3, §4.2.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from pdt.contract import Contract
from pdt.evaluation.lines.document import HeldOutChoice, HeldOutDocument
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.written import Written


def choice_bits(choice: HeldOutChoice, log_p: Sequence[float]) -> float:
    """-log2 of the coined word's share among its alternatives."""
    most = max(log_p)
    total = most + math.log(sum(math.exp(value - most) for value in log_p))
    return (total - log_p[choice.alternatives.index(choice.text)]) / math.log(2)


def entropy(document: HeldOutDocument) -> float | None:
    """h, averaged over the document's receivers; None when nothing was coined."""
    return _mean([choice.entropy_bits for choice in document.choices])


def cross_entropy(document: HeldOutDocument, scored: Likelihoods) -> float | None:
    """The receivers' cross entropy on what was coined, in bits."""
    return _mean(
        [choice_bits(choice, scored.choices[choice.dependency_id]) for choice in document.choices]
    )


OTHER = "?"
"""A word behind the cue that is none of the alternatives."""


class Agreement(Contract):
    """One coined choice in one free generation."""

    owner_word: str | None
    """What stands behind the cue in the owner's lane; None when it never wrote the cue."""
    receiver_word: str | None
    in_time: bool
    """The owner's note could reach the state that chose the receiver's word."""
    alternatives: int

    @property
    def both(self) -> bool:
        return self.owner_word is not None and self.receiver_word is not None

    @property
    def agree(self) -> bool:
        return self.both and self.owner_word == self.receiver_word != OTHER


def agreement(
    choice: HeldOutChoice,
    written: Written,
    *,
    block_tokens: int,
    window_blocks: int,
    delay_blocks: int = 1,
) -> Agreement:
    """Compare the first word behind the cue in the owner's lane and in the receiver's."""
    lanes = written.lane_of_plan
    owner = _behind_cue(choice, written.lanes[lanes[choice.owner_lane]].tokens)
    receiver = _behind_cue(choice, written.lanes[lanes[choice.receiver_lane]].tokens)
    in_time = False
    if owner is not None and receiver is not None:
        published = len(written.lanes[lanes[choice.owner_lane]].tokens) // block_tokens
        sent = owner.last // block_tokens
        # The token at place t is chosen by the state of token t - 1 (reading 29).
        lag = (receiver.first - 1) // block_tokens - sent
        in_time = sent < published and 0 <= lag - delay_blocks < window_blocks
    return Agreement(
        owner_word=None if owner is None else owner.word,
        receiver_word=None if receiver is None else receiver.word,
        in_time=in_time,
        alternatives=len(choice.alternatives),
    )


class _Place(NamedTuple):
    """A word in a lane, by its first and last token."""

    first: int
    last: int
    word: str


def _behind_cue(choice: HeldOutChoice, tokens: Sequence[int]) -> _Place | None:
    """The alternative behind the first cue, or `OTHER`."""
    cue = choice.cue_tokens
    for start in range(len(tokens) - len(cue)):
        if tuple(tokens[start : start + len(cue)]) == cue:
            at = start + len(cue)
            for text, behind in zip(choice.alternatives, choice.alternative_tokens, strict=True):
                if tuple(tokens[at : at + len(behind)]) == behind:
                    return _Place(at, at + len(behind) - 1, text)
            return _Place(at, at, OTHER)
    return None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
