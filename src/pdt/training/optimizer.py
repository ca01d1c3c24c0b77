"""AdamW, warmup, cosine decay and clipping: the registered optimizer.

Paper: §6, Appendix A.
"""

import math

import torch
from torch import Tensor

from pdt.config import TrainingConfig
from pdt.model.pdt import ParallelDecoder


def build_optimizer(model: ParallelDecoder, config: TrainingConfig) -> torch.optim.AdamW:
    """One AdamW over everything above the trunk; what a stage freezes has no gradient to take.

    Paper: Appendix A.
    """
    return torch.optim.AdamW(
        [parameter for _, parameter in learned_parameters(model)],
        lr=config.optimizer.learning_rate,
        weight_decay=config.optimizer.weight_decay,
    )


def learned_parameters(model: ParallelDecoder) -> list[tuple[str, torch.nn.Parameter]]:
    """Everything that some stage trains, in a fixed order; the trunk is in none."""
    return [(n, p) for n, p in model.named_parameters() if not n.startswith("trunk.")]


def learning_rate_at(config: TrainingConfig, step: int) -> float:
    """Linear warmup, then a cosine to 0 at the end of the whole curriculum.

    A function of the step alone, so a resumed run needs nothing else.

    Paper: Appendix A.
    """
    peak = config.optimizer.learning_rate
    warmup, steps = config.scaled(config.optimizer.warmup_steps), config.scaled(config.steps)
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def take_step(
    model: ParallelDecoder, optimizer: torch.optim.Optimizer, config: TrainingConfig, step: int
) -> Tensor:
    """Clip the accumulated gradients, step, and forget them; returns their norm before clipping."""
    norm = torch.nn.utils.clip_grad_norm_(
        [p for _, p in learned_parameters(model) if p.grad is not None], config.optimizer.clip_norm
    )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate_at(config, step)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
