"""Random semantic-to-physical assignment: no stack can rely on a fixed job.

Paper: §6.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdt.records.batch import RecordBatch

_LANE_VALUED = ("owner_lane_BF", "dependency_owner_BR", "dependency_receiver_BR")


def draw_assignment(seed: int, positions: Sequence[int], lanes: int) -> Tensor:
    """`physical_of_semantic_BK` of the documents at these places of the training stream.

    A pure function of seed and place: no random stream to save, the same at any world size.
    """
    draws = [np.random.default_rng([seed, place]).permutation(lanes) for place in positions]
    return torch.from_numpy(np.stack(draws))


def assign_lanes(batch: RecordBatch, physical_of_semantic_BK: Tensor) -> RecordBatch:
    """The batch with every plan, section and label on the lane that will write it. Paper: §6."""
    semantic_of_physical = physical_of_semantic_BK.argsort(dim=1)
    row = torch.arange(len(physical_of_semantic_BK))[:, None]
    moved: dict[str, Any] = {}
    for field in fields(batch):
        value = getattr(batch, field.name)
        if field.name in _LANE_VALUED:
            physical = physical_of_semantic_BK.gather(1, value.clamp(min=0))
            moved[field.name] = torch.where(value >= 0, physical, value)
        elif field.name.rpartition("_")[2].startswith("BK"):
            moved[field.name] = value[row, semantic_of_physical]
    return replace(batch, **moved)
