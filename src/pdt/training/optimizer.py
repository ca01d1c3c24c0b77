"""AdamW, warmup, cosine decay and clipping: the registered optimizer.

Paper: §6, Appendix A.
"""

import math

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from pdt.config import TrainingConfig
from pdt.model.pdt import ParallelDecoder
from pdt.terms import Component
from pdt.training.curriculum import component_of, stage_at


def build_optimizer(model: ParallelDecoder, config: TrainingConfig) -> torch.optim.AdamW:
    """One AdamW over everything above the trunk; what a stage freezes has no gradient to take.

    Paper: Appendix A.
    """
    groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in learned_parameters(model):
        # torch steps over many tensors of one kind at once, so the two kinds are apart.
        kind = component_of(name) is Component.LANES, isinstance(parameter, DTensor)
        groups.setdefault(kind, []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": parameters, "rate": 1.0 if stack else config.optimizer.coordination_rate}
            for (stack, _), parameters in groups.items()
        ],
        lr=config.optimizer.learning_rate,
        weight_decay=config.optimizer.weight_decay,
    )


def learned_parameters(model: ParallelDecoder) -> list[tuple[str, torch.nn.Parameter]]:
    """Everything that some stage trains, in a fixed order; the trunk is in none."""
    return [(n, p) for n, p in model.named_parameters() if not n.startswith("trunk.")]


def learning_rate_at(config: TrainingConfig, step: int) -> float:
    """Linear warmup, then a cosine to 0 at the end of the whole curriculum, or of the stage.

    A function of the step alone, so a resumed run needs nothing else.

    Paper: Appendix A.
    """
    peak = config.optimizer.learning_rate
    warmup, steps = config.scaled(config.optimizer.warmup_steps), config.scaled(config.steps)
    stage = stage_at(config, step)
    if stage.learning_rate is not None:
        peak, steps = stage.learning_rate, stage.stop_step - stage.first_step
        step -= stage.first_step
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def take_step(
    model: ParallelDecoder,
    optimizer: torch.optim.Optimizer,
    config: TrainingConfig,
    step: int,
    norm: float,
) -> None:
    """Clip the accumulated gradients, whose norm is given, step, and forget them."""
    kept = min(1.0, config.optimizer.clip_norm / (norm + 1e-6))
    for _, parameter in learned_parameters(model):
        if parameter.grad is not None:
            local(parameter.grad).mul_(kept)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate_at(config, step) * group["rate"]
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor; any other as it is."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
