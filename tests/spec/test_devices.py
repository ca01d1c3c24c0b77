"""Training and generation run on their model's device; the meta device stands for any other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx.experimental._config as fx_config
from torch.overrides import TorchFunctionMode

from pdt.generation.events import Done
from pdt.generation.loop import start
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.objective.total import total_loss
from pdt.terms import Loss, PlanCondition
from pdt.training.losses import compute_losses
from pdt.training.recompute import recompute_activations
from tests.conftest import open_model
from tests.support.training_samples import corpus


class Answers(TorchFunctionMode):
    """What a device without data cannot say: no condition holds, nothing is counted."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.__bool__:
            return False
        if function is torch.Tensor.tolist:
            return torch.zeros(args[0].shape, dtype=args[0].dtype).tolist()
        if function is torch.Tensor.cpu:
            return torch.zeros(args[0].shape, dtype=args[0].dtype)
        if function is torch.bincount:
            return args[0].new_zeros(kwargs["minlength"])
        return function(*args, **(kwargs or {}))


@pytest.mark.slow
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
    recompute_activations(model)
    batch = next(shards.batches(2)).to(device)
    patched = fx_config.patch  # type: ignore[attr-defined]  # made when the module is loaded
    with Answers(), patched(meta_nonzero_assume_all_nonzero=True):
        parts = compute_losses(model, batch, plan, tuple(Loss)).parts
        total = total_loss(parts, config.objective)
        total.backward()
    assert set(parts) == set(Loss)
    assert {(part.device, part.dtype) for part in parts.values()} == {(device, torch.float32)}
    reached = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is not None}
    assert reached == {"planner", "plan_memory", "lanes", "note_writer", "heads"}


@pytest.mark.paper("§3.6")
@pytest.mark.parametrize("serial", [False, True])
def test_no_tensor_of_a_generation_is_left_on_another_device(serial: bool) -> None:
    """Prompts of two lengths, given plans, two barriers; the draws alone are made on the CPU."""
    model = open_model().to(torch.device("meta"))
    config, lanes = model.config, model.config.lanes.count
    settings = GenerationSettings(max_tokens=2 * config.lanes.block_tokens + 1)
    nodes = torch.randn(2, lanes, config.planner.nodes, config.planner.width)
    plans = PlanSet(nodes, torch.ones(nodes.shape[:3], dtype=torch.bool), torch.zeros(2, lanes))
    with Answers():
        if serial:
            tokens, bus = write_serially(model, [1, 2, 3], settings)
        else:
            generation = start(model, [[1, 2, 3], [4, 5]], settings, plans=plans)
            *_, done = generation.events()
            assert isinstance(done, Done)
            tokens, bus = [list(s.tokens) for s in done.documents[0].sections], generation.bus
    assert [len(row) for row in tokens] == [settings.max_tokens] * lanes
    assert len(bus.blocks) >= 2
    assert {note.vectors_BKE.device.type for note in bus.blocks} == {"meta"}
