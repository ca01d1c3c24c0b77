"""Activation recomputation: an upper layer keeps its inputs and runs again in the backward pass.

The model does not know: it calls its layers through `call_layer`, which is set here.

Paper: Appendix A.
"""

from collections.abc import Callable
from contextvars import copy_context

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pdt.model.cache import LayerMemory, SegmentList
from pdt.model.gated_read import ReadMemory
from pdt.model.layer import LaneLayer
from pdt.model.pdt import ParallelDecoder
from pdt.model.rope import Rotary


def recompute_activations(model: ParallelDecoder, wanted: bool = True) -> None:
    """Upper layers and token scores are computed again in the backward pass, or kept."""
    model.call_layer = _recomputed if wanted else LaneLayer.__call__


def run_again(model: ParallelDecoder, run: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """`run(h)`, whose activations are treated as those of the model's layers."""
    if model.call_layer is not _recomputed or not torch.is_grad_enabled():
        return run(h)
    return checkpoint(run, h, use_reentrant=False, preserve_rng_state=False)


def _recomputed(
    layer: LaneLayer,
    h_BKTD: Tensor,
    rotary: Rotary,
    memory: LayerMemory,
    plan: ReadMemory,
    notes: ReadMemory | None,
) -> Tensor:
    """What `layer(...)` returns; the second run must find memory and products as the first did."""
    if not torch.is_grad_enabled():
        return layer(h_BKTD, rotary, memory, plan, notes)
    past, context = memory.past, copy_context()

    def run(h_BKTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = SegmentList(past)
        h_BKTD = layer(h_BKTD, rotary, seen, plan, notes)
        return h_BKTD, seen.past[-1].k, seen.past[-1].v

    out, k, v = checkpoint(
        lambda h: context.run(run, h), h_BKTD, use_reentrant=False, preserve_rng_state=False
    )
    memory.extend(k, v)
    return out
