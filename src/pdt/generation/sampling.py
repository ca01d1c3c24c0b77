"""From logits to one token, with a random stream that belongs to one lane.

A lane's draws depend on the seed and its lane index, and on nothing beside it: not on the batch,
not on a sibling that ended.

Paper: §3.6.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from pdt.generation.settings import GenerationSettings


def lane_generator(seed: int, lane: int) -> torch.Generator:
    """The lane's own random stream."""
    name = hashlib.sha256(f"pdt lane {lane} seed {seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(name[:7], "big"))


def choose_token(
    logits_V: Tensor,
    written: Sequence[int],
    settings: GenerationSettings,
    generator: torch.Generator,
) -> int:
    """One token. Every call takes one number from the stream, greedy or not."""
    draw = torch.rand((), generator=generator, dtype=torch.float64)
    logits = logits_V.detach().float().cpu()
    if settings.repetition_penalty != 1.0 and written:
        logits = penalize(logits, written, settings.repetition_penalty)
    if settings.temperature == 0:
        return int(logits.argmax())
    scores, tokens = _kept(logits / settings.temperature, settings)
    cumulative = torch.softmax(scores.double(), dim=-1).cumsum(-1)
    index = int(torch.searchsorted(cumulative, draw * cumulative[-1], right=True))
    return int(tokens[min(index, len(tokens) - 1)])


def penalize(logits_V: Tensor, written: Sequence[int], penalty: float) -> Tensor:
    """Divide positive and multiply negative scores of tokens the lane has written."""
    logits = logits_V.clone()
    seen = torch.tensor(sorted(set(written)))
    logits[seen] = torch.where(logits[seen] > 0, logits[seen] / penalty, logits[seen] * penalty)
    return logits


def _kept(logits_V: Tensor, settings: GenerationSettings) -> tuple[Tensor, Tensor]:
    """Scores and tokens that survive top-k, top-p and min-p, most likely first."""
    count = min(settings.top_k or len(logits_V), len(logits_V))
    scores, tokens = logits_V.topk(count)
    probabilities = torch.softmax(scores.double(), dim=-1)
    before = probabilities.cumsum(-1) - probabilities
    keep = (before < settings.top_p) & (probabilities >= settings.min_p * probabilities[0])
    keep[0] = True
    return scores[keep], tokens[keep]
