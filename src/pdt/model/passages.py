"""What the frozen trunk says of a passage of the prompt, in the planner's space.

A node that owned the passage would be this vector (`NodeTarget`). It is a unit vector of features,
how their values differ from the prompt's mean, through one fixed Gaussian projection.

Paper: §4.3 (a fixed projection of what a node says).
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.config import PdtConfig
from pdt.model.prompt import Prompt
from pdt.model.trunk import Trunk
from pdt.records.embed import Projection
from pdt.terms import NodeTarget

OPENING_TOKENS = 4
FIRST_WEIGHTS = tuple(0.87**place for place in range(12))
"""Of a passage's first tokens, where a node is made of words. A lane needs the first one first;
the later ones tell apart what begins alike."""


def passages_in_plan_space(
    config: PdtConfig, trunk: Trunk, prompt: Prompt, start_BF: Tensor, stop_BF: Tensor
) -> Tensor:
    """What a node that owned such a passage of the prompt would be, at any length: [B, F, P]."""
    start_BF, stop_BF = start_BF.clamp(min=1), stop_BF.clamp(min=2)
    form = config.planner.targets
    if form is NodeTarget.FIRST_WORDS:
        said = _at(_first_words(trunk, prompt), start_BF)
    else:
        said = _states(prompt, start_BF, stop_BF, form)
    said_BFD = F.normalize(said, dim=-1)
    return said_BFD @ _projection(config).to(said_BFD.device).T


def passages_from_each_place(config: PdtConfig, trunk: Trunk, prompt: Prompt) -> Tensor:
    """What a node would be whose passage began at each place of the prompt: [B, T, P]."""
    B, T = prompt.h_BTD.shape[:2]
    start_BT = torch.arange(T, device=prompt.h_BTD.device).expand(B, T)
    stop_BT = torch.minimum(start_BT + OPENING_TOKENS, prompt.lengths_B[:, None].to(start_BT))
    return passages_in_plan_space(config, trunk, prompt, start_BT, stop_BT)


def _states(prompt: Prompt, start_BF: Tensor, stop_BF: Tensor, form: NodeTarget) -> Tensor:
    """The sum of the states that this form takes of each passage."""
    if form is NodeTarget.BEFORE:
        start_BF, stop_BF = start_BF - 1, start_BF
    elif form is NodeTarget.OPENING:
        stop_BF = torch.minimum(stop_BF, start_BF + OPENING_TOKENS)
    sums = F.pad(_about_mean(prompt.h_BTD, prompt).cumsum(1), (0, 0, 1, 0))
    return _at(sums, stop_BF) - _at(sums, start_BF)


def _first_words(trunk: Trunk, prompt: Prompt) -> Tensor:
    """Of a passage that began at each place: the embeddings of its first tokens, [B, T, D]."""
    words_BTD = _about_mean(trunk.embed_tokens(prompt.tokens_BT), prompt)
    return torch.stack(
        [
            weight * F.pad(words_BTD[:, ahead:], (0, 0, 0, ahead))
            for ahead, weight in enumerate(FIRST_WEIGHTS)
        ]
    ).sum(0)


def _about_mean(x_BTD: Tensor, prompt: Prompt) -> Tensor:
    """Vectors of one size, less their mean over the prompt; zero on padding."""
    x_BTD = F.rms_norm(x_BTD.float(), x_BTD.shape[-1:])
    if prompt.valid_BT is not None:
        x_BTD = x_BTD * prompt.valid_BT[..., None]
    x_BTD = x_BTD - (x_BTD.sum(1) / prompt.lengths_B[:, None])[:, None]
    return x_BTD if prompt.valid_BT is None else x_BTD * prompt.valid_BT[..., None]


def _at(x_BTD: Tensor, place_BF: Tensor) -> Tensor:
    row = torch.arange(len(x_BTD), device=x_BTD.device)[:, None]
    return x_BTD[row, place_BF]


def _projection(config: PdtConfig) -> Tensor:
    """The fixed Gaussian map from the trunk's width to the planner's."""
    return _drawn(config.records.projection_seed, config.planner.width, config.trunk.shape.width)


@lru_cache(maxsize=4)
def _drawn(seed: int, planner_width: int, trunk_width: int) -> Tensor:
    projection = Projection(seed, planner_width=planner_width, encoder_width=trunk_width)
    return torch.from_numpy(projection.weight_PE)
