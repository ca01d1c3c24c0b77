"""Exact causal grouped-query attention over a list of key-value segments.

The prompt below the fork is one segment that every lane reads; what a lane has written is another
that is its own. Nothing is copied to make them one: scores are taken per segment, the softmax runs
over all of them, and each segment's values are added up. Decoding and training both read this way.

Paper: §3.1, §3.3, Appendix A.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

QUERY_TILE = 512
"""Queries whose scores exist at one time; bounds memory, changes no value."""


@dataclass(frozen=True)
class Segment:
    """Keys and values of a run of positions; lane axis 1 when all lanes share them, else K."""

    k: Tensor  # [B, 1 or K, G, S, X]
    v: Tensor
    valid_BS: Tensor | None = None
    """False where a shorter document of the batch is padded; None when all positions are real."""
    seen_BKT: Tensor | None = None
    """Of the queries' own segment: how many of its positions each may read, where lanes stand at
    different places; None for the causal triangle, aligned to its end."""

    @property
    def length(self) -> int:
        return self.k.shape[3]


def attend(q_BKHTX: Tensor, segments: Sequence[Segment], tile: int = QUERY_TILE) -> Tensor:
    """Attention of T queries a lane to everything in `segments`.

    The last segment ends with the queries' own positions, so its causal triangle is aligned to its
    end; every earlier segment is past and fully readable where valid.
    """
    *past, own = segments
    T = q_BKHTX.shape[3]
    if not past and own.length == T and own.k.shape[1] == q_BKHTX.shape[1]:
        return _attend_self(q_BKHTX, own)
    tiles = []
    for start in range(0, T, tile):
        stop = min(start + tile, T)
        if own.seen_BKT is None:
            # Keys after the tile's last query are in its future: they are not even scored.
            seen = own.length - T + stop
            tail = Segment(own.k[:, :, :, :seen], own.v[:, :, :, :seen])
        else:
            tail = replace(own, seen_BKT=own.seen_BKT[:, :, start:stop])
        tiles.append(_attend_tile(q_BKHTX[:, :, :, start:stop], [*past, tail]))
    return tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=3)


def _attend_self(q_BKHTX: Tensor, own: Segment) -> Tensor:
    """A run of positions that reads only itself: the fused kernel of torch."""
    B, K = q_BKHTX.shape[:2]
    q, k, v = (x.flatten(0, 1) for x in (q_BKHTX, own.k, own.v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.unflatten(0, (B, K))


def _attend_tile(q_BKHTX: Tensor, segments: Sequence[Segment]) -> Tensor:
    """The softmax over all segments at once, with each segment's keys and values where they lie."""
    B, K, H, T, X = q_BKHTX.shape
    G = segments[0].k.shape[2]
    q = (q_BKHTX * X**-0.5).reshape(B, K, G, H // G, T, X)
    scores = [_scores(q, segment) for segment in segments]
    if segments[-1].seen_BKT is not None:
        scores[-1] = _hide_unseen(scores[-1], segments[-1].seen_BKT)
    elif T > 1:
        scores[-1] = scores[-1] + _causal_bias(scores[-1])
    weights = torch.softmax(torch.cat(scores, dim=-1), dim=-1)
    out = q.new_zeros(q.shape)
    for part, segment in zip(
        weights.split([s.length for s in segments], dim=-1), segments, strict=True
    ):
        out = out + _weighted_values(part, segment)
    return out.reshape(B, K, H, T, X)


def _scores(q_BKGRTX: Tensor, segment: Segment) -> Tensor:
    """[B, K, G, R, T, S]; a shared segment is read once for the rows of all lanes."""
    B, K, G, R, T, X = q_BKGRTX.shape
    k = segment.k.transpose(-1, -2)  # [B, 1 or K, G, X, S]
    if k.shape[1] == K:
        scores = (q_BKGRTX.reshape(B, K, G, R * T, X) @ k).unflatten(3, (R, T))
    else:
        rows = q_BKGRTX.transpose(1, 2).reshape(B, G, K * R * T, X)
        scores = (rows @ k[:, 0]).unflatten(2, (K, R, T)).transpose(1, 2)
    if segment.valid_BS is not None:
        scores = scores.masked_fill(~segment.valid_BS[:, None, None, None, None, :], -torch.inf)
    return scores


def _weighted_values(weights_BKGRTS: Tensor, segment: Segment) -> Tensor:
    B, K, G, R, T, S = weights_BKGRTS.shape
    if segment.v.shape[1] == K:
        return (weights_BKGRTS.reshape(B, K, G, R * T, S) @ segment.v).unflatten(3, (R, T))
    rows = weights_BKGRTS.transpose(1, 2).reshape(B, G, K * R * T, S)
    return (rows @ segment.v[:, 0]).unflatten(2, (K, R, T)).transpose(1, 2)


def _hide_unseen(scores_BKGRTS: Tensor, seen_BKT: Tensor) -> Tensor:
    place_S = torch.arange(scores_BKGRTS.shape[-1], device=scores_BKGRTS.device)
    unseen_BKTS = place_S >= seen_BKT[..., None]
    return scores_BKGRTS.masked_fill(unseen_BKTS[:, :, None, None], -torch.inf)


def _causal_bias(scores: Tensor) -> Tensor:
    """0 where a query may look, -inf in its future; the last query is aligned with the last key."""
    T, S = scores.shape[-2:]
    future = torch.ones(T, S, dtype=torch.bool, device=scores.device).triu(S - T + 1)
    return torch.zeros(T, S, dtype=scores.dtype, device=scores.device).masked_fill(
        future, -torch.inf
    )
