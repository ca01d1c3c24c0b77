"""What a generation asks for between two tokens, and how one that runs alone is answered.

A generation never runs a round itself: it asks for one. So the same loop serves a document alone
and documents that share their rounds (pack.py).

Paper: §3.6.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.model.kernels import FEW_ROWS
from pdt.model.kernels.held import Counts
from pdt.model.kernels.round import NativeRound, Notes, rounds_of
from pdt.model.pdt import Frontier, ParallelDecoder


@dataclass(frozen=True)
class RoundAsked:
    """Take these tokens in, under these notes."""

    frontier: Frontier
    tokens_BKT: Tensor
    """Padded: a lane takes `counts_BK` of its T."""
    counts_BK: Counts
    notes: Notes


@dataclass(frozen=True)
class Advanced:
    """Where the lanes stand after each token of a round, and what they would say next."""

    h_BKTD: Tensor
    logits: list[list[Tensor]]
    """[T, V] of the tokens taken in, by document and lane."""


def rounds_alone(model: ParallelDecoder) -> Callable[[RoundAsked], Advanced]:
    """Rounds of one generation that shares them with nobody."""
    ready = None

    def answer(asked: RoundAsked) -> Advanced:
        nonlocal ready
        ready = ready or rounds_of(model, asked.frontier)
        h_BKTD = ready(asked.tokens_BKT, asked.notes, asked.counts_BK)
        rows_RD = real_rows(h_BKTD, asked.counts_BK)
        logits = next_logits if isinstance(ready, NativeRound) else ParallelDecoder.logits
        return Advanced(h_BKTD, by_lane(logits(model, rows_RD), asked.counts_BK))

    return answer


def next_logits(model: ParallelDecoder, rows_RD: Tensor) -> Tensor:
    """[R, V], in products of few rows: what a row gives does not depend on the rows beside it."""
    return torch.cat([model.logits(few) for few in rows_RD.split(FEW_ROWS)])


def real_rows(h_BKTD: Tensor, counts_BK: Counts) -> Tensor:
    """[R, D]: without the padding, by document, then by lane."""
    real_BKT = torch.arange(h_BKTD.shape[2]) < torch.tensor(counts_BK)[..., None]
    b, k, t = (index.to(h_BKTD.device) for index in real_BKT.nonzero(as_tuple=True))
    return h_BKTD[b, k, t]


def by_lane(rows_RV: Tensor, counts_BK: Counts) -> list[list[Tensor]]:
    """What `real_rows` has put together, by document and lane."""
    parts = iter(rows_RV.split([count for row in counts_BK for count in row]))
    return [[next(parts) for _ in row] for row in counts_BK]
