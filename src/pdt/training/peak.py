"""The memory of a training step before it runs: the real step on tensors without storage.

Every loss and its backward pass run on torch's meta device: shapes and lifetimes are those of the
step, nothing is computed. The live bytes are counted as they come and go, so recomputation,
block borders and the logits of a block are seen as they are. Workspaces inside one kernel are not.

Paper: Appendix A.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pdt.config import PdtConfig
from pdt.model.census import FP32, Memory, meta_model, take_census
from pdt.model.pdt import ParallelDecoder
from pdt.model.prompt import Prompt
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch
from pdt.records.shards import ARRAYS
from pdt.terms import Loss, PlanCondition
from pdt.training.losses import losses_above_the_fork
from pdt.training.optimizer import learned_parameters
from pdt.training.recompute import recompute_activations
from pdt.training.trunk_states import TrunkStates


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of tensors that live, while it is entered; real or fake ones."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, list | tuple) else (out,):
            if isinstance(value, Tensor) and not _aliases(func):
                self._count(value.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        handle, size = storage._cdata, storage.nbytes()
        if handle in self._seen:  # an `_unsafe_view` does not say that it is one
            return
        self._seen.add(handle)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._gone, handle, size)

    def _gone(self, handle: int, size: int) -> None:
        self._seen.discard(handle)
        self.live -= size


@cache
def _aliases(func: Any) -> bool:
    """Whether an operation returns what it was given, seen anew or written in place."""
    return any(result.alias_info is not None for result in func._schema.returns)


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return fused(q, k, v, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]


@contextmanager
def _attention_is_fused() -> Iterator[None]:
    """On the meta device torch would choose the unfused attention, which holds all scores."""
    plain = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = _fused_attention  # type: ignore[assignment]
    try:
        yield
    finally:
        F.scaled_dot_product_attention = plain


def peak_of(run: Callable[[], object]) -> int:
    """Most bytes alive at one time of all that `run` makes."""
    with LiveBytes() as counted:
        run()
    return counted.peak


def predict_step_memory(
    config: PdtConfig, *, prompt_tokens: int, section_tokens: int, documents: int, facts: int
) -> Memory:
    """Bytes of a training step in fp32 on one device, gradients of an earlier batch at hand.

    The trunk's own pass is over by then, or its states came from the cache.

    Paper: Appendix A.
    """
    with torch.device("meta"), _attention_is_fused():
        model = meta_model(config)
        recompute_activations(model, config.training.recompute)
        sizes = (documents, prompt_tokens, section_tokens, facts)
        states, batch = sample_step(config, *sizes)
        for _, parameter in learned_parameters(model):
            parameter.grad = torch.empty_like(parameter)
        peak = peak_of(lambda: run_step(model, states, batch))
    census = take_census(config)
    trained = (census.physical_total + census.coordination_total) * FP32
    return Memory(
        {
            "trunk weights (FP32, frozen)": census.shared_total * FP32,
            "trained weights (FP32)": trained,
            "gradients (FP32)": trained,
            "AdamW moments (FP32)": 2 * trained,
            "activations, at their peak": peak,
        }
    )


def run_step(model: ParallelDecoder, states: TrunkStates, batch: RecordBatch) -> None:
    """Every loss of the objective, with learned plans, and its backward pass."""
    parts = losses_above_the_fork(model, batch, states, PlanCondition.LEARNED, tuple(Loss)).parts
    total_loss(parts, model.config.objective).backward()


def sample_step(
    config: PdtConfig, documents: int, prompt_tokens: int, section_tokens: int, facts: int
) -> tuple[TrunkStates, RecordBatch]:
    """Documents of the given size without content: every lane writes the same number of tokens."""
    blocks = -(-section_tokens // config.lanes.block_tokens)
    size = {
        "B": documents,
        "K": config.lanes.count,
        "N": config.planner.nodes,
        "P": config.planner.width,
        "E": config.heads.fact_width,
        "S": prompt_tokens,
        "T": section_tokens,
        "F": facts,
        "U": blocks,
        "R": 1,
        "J": 1,
    }
    arrays: dict[str, Any] = {}
    for name, axes in ARRAYS.items():
        stem, _, letters = name.rpartition("_")
        dtype = torch.int64 if axes.dtype.startswith("int") else getattr(torch, axes.dtype)
        shape = [documents, *(size[letter] for letter in letters)]
        arrays[f"{stem}_B{letters}"] = torch.zeros(shape, dtype=dtype)
    names = tuple(f"document-{n}" for n in range(documents))
    empty: tuple[tuple[Any, ...], ...] = ((),) * documents
    batch = RecordBatch(record_ids=names, dependency_ids=empty, coined_choice_ids=empty, **arrays)
    width, lanes = config.trunk.shape.width, config.lanes.count
    lengths = torch.full((documents,), prompt_tokens)
    prompt = Prompt(
        torch.zeros(documents, prompt_tokens, width),
        lengths,
        None,
        torch.zeros(documents, prompt_tokens, dtype=torch.long),
        (),
    )
    fork = torch.zeros(lanes, documents, section_tokens, width).transpose(0, 1)
    return TrunkStates(prompt, fork), batch
