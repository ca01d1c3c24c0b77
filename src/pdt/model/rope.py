"""Rotary positions, with the scaling variants of the supported families.

Paper: §3.1 (the trunk's own layers, unchanged).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pdt.config import RopeConfig
from pdt.terms import RopeScaling


class Rotary(NamedTuple):
    """Cosines and sines of the current positions, [B, 1 or K, 1, T, X]."""

    cos: Tensor
    sin: Tensor

    def turn(self, x_BKHTX: Tensor) -> Tensor:
        """Rotate each pair (i, i + X/2) by its position's angle (the half-split layout)."""
        first, second = x_BKHTX.chunk(2, dim=-1)
        half = first.shape[-1]  # both halves of a row turn by the same angles
        cos, sin = self.cos[..., :half], self.sin[..., :half]
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def rotary(
    config: RopeConfig, head_width: int, positions_BKT: Tensor, dtype: torch.dtype
) -> Rotary:
    """Angles in fp32, cast last, as the families' own code does; lane axis 1 where all agree."""
    frequencies, scale = rope_frequencies(config, head_width)
    angles = positions_BKT[:, :, None, :, None].float() * frequencies.to(positions_BKT.device)
    angles = torch.cat((angles, angles), dim=-1)  # [B, 1 or K, 1, T, X]
    return Rotary((angles.cos() * scale).to(dtype), (angles.sin() * scale).to(dtype))


def rope_frequencies(config: RopeConfig, head_width: int) -> tuple[Tensor, float]:
    """Inverse frequencies [X/2] and the factor on cosine and sine."""
    exponents = torch.arange(0, head_width, 2, dtype=torch.float32) / head_width
    plain = 1.0 / config.theta**exponents
    match config.scaling:
        case RopeScaling.NONE:
            return plain, 1.0
        case RopeScaling.LINEAR:
            return plain / config.factor, 1.0
        case RopeScaling.LLAMA3:
            return _llama3(config, plain), 1.0
        case RopeScaling.YARN:
            return _yarn(config, plain, head_width)


def _llama3(config: RopeConfig, plain: Tensor) -> Tensor:
    """Long wavelengths are stretched, short ones kept, those between are blended."""
    assert (
        config.original_positions and config.low_frequency_factor and config.high_frequency_factor
    )
    turns = config.original_positions * plain / (2 * math.pi)
    low, high = config.low_frequency_factor, config.high_frequency_factor
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return keep * plain + (1 - keep) * plain / config.factor


def _yarn(config: RopeConfig, plain: Tensor, head_width: int) -> tuple[Tensor, float]:
    """NTK-by-parts: a ramp over the pair index between two numbers of turns."""
    assert config.original_positions

    def index_of_turns(turns: float) -> float:
        full_turns = config.original_positions / (turns * 2 * math.pi)  # type: ignore[operator]
        return head_width * math.log(full_turns) / (2 * math.log(config.theta))

    low, high = index_of_turns(config.beta_fast), index_of_turns(config.beta_slow)
    if config.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_width - 1)
    span = max(high - low, 0.001)
    stretch = ((torch.arange(head_width // 2, dtype=torch.float32) - low) / span).clamp(0, 1)
    scale = config.attention_factor
    if scale is None:
        scale = 0.1 * math.log(config.factor) + 1.0 if config.factor > 1 else 1.0
    return stretch * plain / config.factor + (1 - stretch) * plain, scale
