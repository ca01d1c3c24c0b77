"""What a generation asks for between two tokens, and how one that runs alone is answered.

A generation never runs a round itself: it asks for one. So the same loop serves a document alone
and documents that share their rounds (pack.py).

Paper: §3.6.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pdt.model.kernels.round import Notes, rounds_of
from pdt.model.pdt import Frontier, ParallelDecoder


@dataclass(frozen=True)
class RoundAsked:
    """Take these tokens in, under these notes."""

    frontier: Frontier
    tokens_BK1: Tensor
    notes: Notes


@dataclass(frozen=True)
class Advanced:
    """Where the lanes stand after a round, and what they would say next."""

    h_BKD: Tensor
    logits_BKV: Tensor


def rounds_alone(model: ParallelDecoder) -> Callable[[RoundAsked], Advanced]:
    """Rounds of one generation that shares them with nobody."""
    ready = None

    def answer(asked: RoundAsked) -> Advanced:
        nonlocal ready
        ready = ready or rounds_of(model, asked.frontier)
        h_BK1D = ready(asked.tokens_BK1, asked.notes)
        return Advanced(h_BK1D[:, :, 0], model.logits(h_BK1D)[:, :, 0])

    return answer
