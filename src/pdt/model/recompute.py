"""Activation recomputation: an upper layer keeps its inputs and runs again in the backward pass.

Paper: Appendix A.
"""

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pdt.model.cache import LayerMemory, SegmentList
from pdt.model.gated_read import ReadMemory
from pdt.model.layer import LaneLayer
from pdt.model.rope import Rotary
from pdt.model.weight_gradients import gathered, open_gathering


def recomputed(
    layer: LaneLayer,
    h_BKTD: Tensor,
    rotary: Rotary,
    memory: LayerMemory,
    plan: ReadMemory,
    notes: ReadMemory | None,
) -> Tensor:
    """What `layer(...)` returns; the second run must find the memory as the first one did."""
    past, gathering = memory.past, open_gathering()

    def run(h_BKTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen = SegmentList(past)
        with gathered(gathering):
            h_BKTD = layer(h_BKTD, rotary, seen, plan, notes)
        return h_BKTD, seen.past[-1].k, seen.past[-1].v

    out, k, v = checkpoint(run, h_BKTD, use_reentrant=False, preserve_rng_state=False)
    memory.extend(k, v)
    return out
