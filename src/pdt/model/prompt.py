"""The common prompt as the frozen trunk has read it.

Paper: §3.1, Fig. 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pdt.model.attention import Segment


@dataclass(frozen=True)
class Prompt:
    """The common prompt, read once below the fork; what the planner and every lane start from."""

    h_BTD: Tensor
    """Trunk states at the fork."""
    lengths_B: Tensor
    valid_BT: Tensor | None
    """None when all prompts of the batch are equally long."""
    tokens_BT: Tensor
    """What was read; anything on padding."""
    lower: Sequence[Segment]
    """Keys and values of each trunk layer: one copy, lane axis 1; none where only states matter."""
