"""What packing costs a model in exactness: logits and perplexity on a text, against its floats.

The text is read in windows by one lane, which an untrained model's lanes all equal.

Not in the paper.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.bench.duel import bytes_a_round
from pdt.errors import UsageError
from pdt.model.one_lane import one_lane
from pdt.model.packing import is_packed, quantise
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import load_model
from pdt.model.weights import open_weights


@dataclass(frozen=True)
class PackingResult:
    """One number type on one text."""

    numbers: str
    megabytes: float
    """Weights that a packed round reads."""
    tokens: int
    perplexity: float
    mean_difference: float
    """Of log-probabilities, over all tokens of the vocabulary."""
    largest_difference: float
    divergence: float
    """Mean KL divergence of the floats' next-token distribution from it, in nats."""
    agreement: float
    """How often both name the same most likely token."""


@torch.inference_mode()
def bench_packing(source: str, text: str, *, tokens: int, window: int) -> Iterator[PackingResult]:
    """The floats first, then 8 and 4 bits; each model is loaded, measured and let go."""
    reference: list[Tensor] = []
    for bits in (None, 8, 4):
        model = load_model(source)
        if is_packed(model):
            raise UsageError(f"{source} is quantised: give the model that it was made from.")
        if model.tokenizer is None:
            raise UsageError(f"{source} has no tokenizer, so it cannot read a text.")
        ids = list(model.tokenizer.encode(text).ids[:tokens])
        if len(ids) < 2:
            raise UsageError("The text is too short: it has fewer than two tokens.")
        if bits is not None:
            named = model.trunk_identity.source if model.trunk_identity else None
            gguf = named if bits == 4 and (named or "").endswith(".gguf") else None
            quantise(model, bits, None if gguf is None else open_weights(gguf))
        scores = [_scores(model, ids[at : at + window]) for at in range(0, len(ids) - 1, window)]
        reference = reference or scores
        yield _compare(model, "fp32" if bits is None else f"{bits} bits", ids, scores, reference,
                       window)  # fmt: skip


def _scores(model: ParallelDecoder, ids: list[int]) -> Tensor:
    """Log-probabilities after each token of a window, [T, V], by lane 0 without notes."""
    view = one_lane(model, 0)
    prompt = model.read_prompt(torch.tensor([ids[:1]]))
    frontier = view.open_lanes(prompt, model.plan(prompt).select([0]))
    states = [frontier.h_BKD[0]]
    if len(ids) > 1:
        states.append(view.advance(frontier, torch.tensor([[ids[1:]]]), None)[0, 0])
    return F.log_softmax(view.logits(torch.cat(states)[None, None])[0, 0], dim=-1)


def _compare(
    model: ParallelDecoder, numbers: str, ids: list[int], scores: list[Tensor],
    reference: list[Tensor], window: int,
) -> PackingResult:  # fmt: skip
    losses, differences, largest, divergences, same = [], [], 0.0, [], []
    for index, (ours, theirs) in enumerate(zip(scores, reference, strict=True)):
        part = ids[index * window : (index + 1) * window]
        losses.append(F.nll_loss(ours[:-1], torch.tensor(part[1:]), reduction="none"))
        difference = (ours - theirs).abs()
        differences.append(difference.mean(-1))
        largest = max(largest, float(difference.max()))
        divergences.append((theirs.exp() * (theirs - ours)).sum(-1))
        same.append((ours.argmax(-1) == theirs.argmax(-1)).float())
    return PackingResult(
        numbers=numbers,
        megabytes=bytes_a_round(model, 0, 0) / 1e6,
        tokens=len(ids),
        perplexity=math.exp(float(torch.cat(losses).mean())),
        mean_difference=float(torch.cat(differences).mean()),
        largest_difference=largest,
        divergence=float(torch.cat(divergences).mean()),
        agreement=float(torch.cat(same).mean()),
    )
