"""Training runs wholly on its model's device; the meta device stands for any but the CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx.experimental._config as fx_config
from torch.overrides import TorchFunctionMode

from pdt.model.pdt import ParallelDecoder
from pdt.objective.total import total_loss
from pdt.terms import Loss, PlanCondition
from pdt.training.losses import compute_losses
from tests.support.training_samples import corpus


class Answers(TorchFunctionMode):
    """What a device without data cannot say: no condition holds, nothing is counted."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.__bool__:
            return False
        if function is torch.Tensor.tolist:
            return []
        if function is torch.bincount:
            return args[0].new_zeros(kwargs["minlength"])
        return function(*args, **(kwargs or {}))


@pytest.mark.paper("§6", "Appendix A")
@pytest.mark.parametrize("plan", [PlanCondition.ORACLE, PlanCondition.LEARNED])
def test_no_tensor_of_a_rollout_is_left_on_another_device(
    tmp_path: Path, plan: PlanCondition
) -> None:
    shards, config = corpus(tmp_path, block_tokens=32)
    device = torch.device("meta")
    model = ParallelDecoder(config).to(device)
    model.trunk.to(torch.bfloat16)
    model.lanes.to(torch.bfloat16)
    model.recompute = True
    batch = next(shards.batches(2)).to(device)
    with Answers(), fx_config.patch(meta_nonzero_assume_all_nonzero=True):
        parts = compute_losses(model, batch, plan, tuple(Loss)).parts
        total = total_loss(parts, config.objective)
        total.backward()
    assert set(parts) == set(Loss)
    assert {(part.device, part.dtype) for part in parts.values()} == {(device, torch.float32)}
    reached = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is not None}
    assert reached == {"planner", "plan_memory", "lanes", "note_writer", "heads"}
