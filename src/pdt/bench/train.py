"""A training step above the fork: what the barriers cost, and what copying the prompt would cost.

    packed     the rollout of §6: one block of all lanes a call, notes at every barrier
    one call   the same stacks over the whole sections at once: no barrier, no notes to read
    naive      packed, but every block's cache is a new copy of prompt and past, as caches grow
               by concatenation

Each side opens the lanes (the prompt above the fork), scores every token and runs backward. The
trunk's states are given, as from the cache.

Paper: §6, Appendix A.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.bench.timing import Timing, interleave, ratio
from pdt.config import PdtConfig, load_config
from pdt.model.attention import Segment
from pdt.model.build import random_model
from pdt.model.pdt import Frontier, ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.objective.token import scoring_states, token_nll
from pdt.training.peak import peak_of
from pdt.training.rollout import roll_out

PACKED, ONE_CALL, NAIVE = "packed", "one call", "naive"


@dataclass(frozen=True)
class Sample:
    """Documents of one size, with random states and tokens."""

    prompt: Prompt
    plans: PlanSet
    fork_BKTD: Tensor
    tokens_BKT: Tensor


@dataclass(frozen=True)
class TrainResult:
    """What one subject and size measured."""

    subject: str
    documents: int
    prompt_tokens: int
    section_tokens: int
    sides: dict[str, Timing]
    peaks: dict[str, int]
    """Most bytes alive in a step, weights and their gradients' first allocation included."""

    def rate(self, side: str) -> float:
        """Documents a second."""
        return self.documents / self.sides[side].median

    def speed_against(self, side: str) -> tuple[float, float, float]:
        """Packed documents a second over those of `side`, with quartiles."""
        return ratio(self.sides[side], self.sides[PACKED])


def bench_train(
    subject: str,
    *,
    documents: int,
    prompt_tokens: int,
    section_tokens: int,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> TrainResult:
    """Time all sides in turn, and count the bytes each holds."""
    model, steps = _sides(load_config(subject), documents, prompt_tokens, section_tokens)
    taken = interleave(steps, repeats=repeats, warmup=1, clock=clock)
    peaks = {}
    for name, step in steps.items():
        model.zero_grad(set_to_none=True)
        peaks[name] = peak_of(step)
    return TrainResult(subject, documents, prompt_tokens, section_tokens, taken, peaks)


def bench_growth(
    subject: str,
    sizes: Sequence[tuple[int, int]],
    *,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[int, int, Timing]]:
    """Seconds of a packed step of one document, for each size of prompt and section."""
    config = load_config(subject)
    model = random_model(config)
    for prompt_tokens, section_tokens in sizes:
        sample = sample_documents(config, 1, prompt_tokens, section_tokens)
        sides = {PACKED: lambda sample=sample: train_packed(model, sample)}
        taken = interleave(sides, repeats=repeats, warmup=1, clock=clock)
        yield prompt_tokens, section_tokens, taken[PACKED]


def sample_documents(
    config: PdtConfig, documents: int, prompt_tokens: int, section_tokens: int
) -> Sample:
    """Every lane writes the same number of tokens; two plan nodes of each lane are valid."""
    draw = torch.Generator().manual_seed(0)
    B, K, D = documents, config.lanes.count, config.trunk.shape.width
    N, P = config.planner.nodes, config.planner.width

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw)

    lengths = torch.full((B,), prompt_tokens)
    prompt = Prompt(
        normal(B, prompt_tokens, D),
        lengths,
        None,
        torch.zeros(B, prompt_tokens, dtype=torch.long),
        (),
    )
    valid = (torch.arange(N) < 2).expand(B, K, N)
    plans = PlanSet(normal(B, K, N, P), valid, torch.zeros(B, K))
    fork = normal(K, B, section_tokens, D).transpose(0, 1)
    shape = (B, K, section_tokens)
    tokens = torch.randint(config.trunk.shape.vocabulary, shape, generator=draw)
    return Sample(prompt, plans, fork, tokens)


def train_packed(model: ParallelDecoder, sample: Sample) -> Tensor:
    """The rollout as training runs it."""
    return _rolled(model, sample, model.open_lanes(sample.prompt, sample.plans))


def train_naive(model: ParallelDecoder, sample: Sample) -> Tensor:
    """The same rollout over caches that are copied whole at every block: the same loss."""
    frontier = model.open_lanes(sample.prompt, sample.plans)
    frontier.upper = [CopiedCache(memory.past) for memory in frontier.upper]
    return _rolled(model, sample, frontier)


def train_one_call(model: ParallelDecoder, sample: Sample) -> Tensor:
    """Whole sections through the stacks at once; no lane reads a note."""
    frontier = model.open_lanes(sample.prompt, sample.plans)
    before_BKD = frontier.h_BKD
    h = model.advance_stacks(frontier, sample.fork_BKTD, None)
    logits = model.logits(scoring_states(before_BKD, h))
    return _learn(token_nll(logits, sample.tokens_BKT))


class CopiedCache:
    """Keys and values of prompt and past in one tensor, copied whole whenever it grows."""

    def __init__(self, past: Sequence[Segment]) -> None:
        self.past: Sequence[Segment] = tuple(past)

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        (old,) = self.past
        k, v = torch.cat([old.k, k_BKGTX], dim=3), torch.cat([old.v, v_BKGTX], dim=3)
        self.past = (Segment(k, v),)
        return self.past


def _sides(
    config: PdtConfig, documents: int, prompt_tokens: int, section_tokens: int
) -> tuple[ParallelDecoder, dict[str, Callable[[], Tensor]]]:
    model = random_model(config)
    sample = sample_documents(config, documents, prompt_tokens, section_tokens)
    return model, {
        PACKED: lambda: train_packed(model, sample),
        ONE_CALL: lambda: train_one_call(model, sample),
        NAIVE: lambda: train_naive(model, sample),
    }


def _rolled(model: ParallelDecoder, sample: Sample, frontier: Frontier) -> Tensor:
    rollout = roll_out(model, frontier, sample.tokens_BKT, fork_BKTD=sample.fork_BKTD)
    return _learn(rollout.scores_BKT)


def _learn(scores_BKT: Tensor) -> Tensor:
    loss = scores_BKT.mean()
    loss.backward()
    return loss.detach()
