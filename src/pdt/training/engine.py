"""PyTorch's own engine, FSDP2, around the model: FP32 masters in shards, compute views whole.

FSDP's usual form gathers a layer when it is called and reduces its gradient when its backward ends.
A packed rollout calls every upper layer once a block: each layer would travel some thirty times a
document, and a rank whose document is shorter would wait for ever. So FSDP sees one call, that of a
whole batch. Units are gathered before the first batch of a step and reduced after its last.

    masters, gradients to step with, AdamW's moments     FP32, one shard a rank
    lanes, Plan-KV, SNC while a step runs                 BF16 views, whole on every rank
    planner, note writer, heads                           FP32: codes and losses are decided there
    trunk                                                 BF16, frozen; whole, or layers in shards

Paper: §6, Appendix A (FP32 masters, BF16 grouped computation).
"""

from collections.abc import Collection
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard

from pdt.errors import UsageError
from pdt.model.kernels.matmul import Way, best_way, check_bf16, use_way
from pdt.model.packing import is_packed
from pdt.model.pdt import ParallelDecoder
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch
from pdt.terms import ComputeDtype, Loss, PlanCondition
from pdt.training.losses import Computed, compute_losses
from pdt.training.optimizer import learned_parameters, local
from pdt.training.ranks import Ranks
from pdt.training.trunk_cache import TrunkCache
from pdt.training.trunk_states import TrunkReader


class Engine:
    """One model on all ranks. With one rank in FP32 there is nothing to shard or to cast."""

    def __init__(self, model: ParallelDecoder, ranks: Ranks) -> None:
        if is_packed(model):
            raise UsageError(
                "A quantised model is for writing: its weights have no gradient.\n"
                "Train the model that it was made from, then `pdt model quantise` the result."
            )
        self.model, self.ranks = model, ranks
        _lay_out(model)
        config = model.config.training
        self.dtype = compute_dtype(config.dtype, ranks.device)
        self.products = self._choose_products()
        self.step = BatchLosses(model)
        self.given_trunk = place_trunk(model, self.dtype, ranks.device)
        for parameter in _scalars(model):  # FSDP shards no scalar: every rank holds the gates
            parameter.data = parameter.data.to(ranks.device)
        # The cache is bound to the trunk as it computes: placed, in its number type.
        self.trunk = self.step.trunk = TrunkReader(model, TrunkCache.of(model, config.trunk_cache))
        if self.trunk.cache is not None and config.shard_trunk and ranks.count > 1:
            raise UsageError(
                "training.trunk_cache and training.shard_trunk exclude each other: a rank that "
                "finds a document would leave the others waiting for its part of the trunk.\n"
                "Set training.shard_trunk=false, or training.trunk_cache.directory=null."
            )
        self.sharded = ranks.count > 1 or self.dtype != torch.float32
        if self.sharded:
            self._shard(shard_trunk=config.shard_trunk)
        else:
            model.to(ranks.device)

    def _choose_products(self) -> Way:
        """How FP32 matrices are multiplied, the same on every rank: what the first one measured."""
        device = self.ranks.device
        if device.type != "cpu":
            return Way.DEFAULT
        with self.ranks.together():
            if self.dtype is torch.bfloat16:
                check_bf16()
            found = best_way() if self.ranks.first else Way.DEFAULT
        way = Way(self.ranks.broadcast(found))
        use_way(way)
        return way

    def losses(
        self, batch: RecordBatch, plan: PlanCondition, counted: Collection[Loss]
    ) -> tuple[Tensor, Computed]:
        """The weighted sum, and its parts."""
        return self.step(batch.to(self.ranks.device), plan, counted)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add this batch's gradient; only the step's last batch speaks to other ranks."""
        if self.sharded:
            root = cast(FSDPModule, self.step)
            root.set_requires_gradient_sync(last)
            root.set_reshard_after_backward(last)
            root.set_is_last_backward(last)
        loss.backward()

    def rest(self) -> None:
        """Give up the whole weights, where they were gathered for losses without a gradient."""
        for module in self.step.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def gradient_norm(self) -> Tensor:
        """Of the step's whole gradient, after the ranks have shared what FSDP does not hold."""
        self._share_gates()
        shards: list[Tensor] = []
        whole: list[Tensor] = []
        for _, parameter in learned_parameters(self.model):
            if parameter.grad is not None:
                kind = shards if isinstance(parameter.grad, DTensor) else whole
                kind.append(local(parameter.grad))
        norm = torch.nn.utils.get_total_norm
        squares = self.ranks.sum(norm(shards).square().to(self.ranks.device))
        return (squares + norm(whole).square()).sqrt()

    def _share_gates(self) -> None:
        gates = [p.grad for p in _scalars(self.model) if p.grad is not None]
        if self.ranks.count > 1 and gates:
            mean = self.ranks.sum(torch.stack(gates)) / self.ranks.count
            for gradient, value in zip(gates, mean.unbind(), strict=True):
                gradient.copy_(value)

    def _shard(self, *, shard_trunk: bool) -> None:
        model, mesh = self.model, self.ranks.mesh()
        apart = {*_scalars(model), *model.trunk.parameters()}
        compute = MixedPrecisionPolicy(
            param_dtype=self.dtype, reduce_dtype=torch.float32, cast_forward_inputs=False
        )
        common: dict[str, Any] = {"mesh": mesh, "shard_placement_fn": self._placement}
        if shard_trunk:
            for layer in model.trunk.layers:
                fully_shard(layer, mesh=mesh, mp_policy=MixedPrecisionPolicy())
        for unit in self.step.units:
            fully_shard(unit, mp_policy=compute, ignored_params=apart, **common)
        apart |= set(model.lanes.parameters())  # what is left: planner, plan memory, writer, heads
        plain = MixedPrecisionPolicy(cast_forward_inputs=False)
        fully_shard(self.step, mp_policy=plain, ignored_params=apart, **common)
        # FSDP notes once which parameters have gradients: now, while no stage has frozen any.
        self.step(None, PlanCondition.ORACLE, ())
        self.rest()

    def _placement(self, parameter: nn.Parameter) -> Shard:
        """Rows of all lanes: K lanes cut along K would leave all but K ranks empty-handed."""
        for axis, size in enumerate(parameter.shape):
            if size % self.ranks.count == 0:
                return Shard(axis)
        return Shard(0)


class BatchLosses(nn.Module):
    """From a batch of documents to its losses: the one call that FSDP sees."""

    def __init__(self, model: ParallelDecoder) -> None:
        super().__init__()
        self.model = model
        self.units = nn.ModuleList(Unit(layer) for layer in model.lane_layers)
        self.trunk: TrunkReader | None = None

    def forward(
        self, batch: RecordBatch | None, plan: PlanCondition, counted: Collection[Loss]
    ) -> Any:
        for unit in self.units:
            if isinstance(unit, FSDPModule):
                unit.unshard()
        if batch is None:  # only gather
            return None
        computed = compute_losses(self.model, batch, plan, counted, self.trunk)
        total = total_loss(computed.parts, self.model.config.objective)
        learning = [p for _, p in learned_parameters(self.model) if p.requires_grad]
        return _Reached.apply(total, *learning), computed


class Unit(nn.Module):
    """An upper layer as a group of weights. It is never called, so FSDP does not see its layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


class _Reached(torch.autograd.Function):
    """The loss as it is; what no document reached gets a gradient of zero instead of none.

    A document of one block reads no notes. Ranks that reduce different parameters would hang.
    """

    @staticmethod
    def forward(ctx: Any, total: Tensor, *learning: Tensor) -> Tensor:
        ctx.like = [(p.shape, p.dtype, p.device) for p in learning]
        return total.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        zeros = (torch.zeros((), dtype=d, device=v).expand(s) for s, d, v in ctx.like)
        return gradient, *zeros


def compute_dtype(wanted: ComputeDtype, device: torch.device) -> torch.dtype:
    """`auto` is BF16 where the device multiplies it natively."""
    if wanted is not ComputeDtype.AUTO:
        return torch.bfloat16 if wanted is ComputeDtype.BFLOAT16 else torch.float32
    native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if native else torch.float32


def _lay_out(model: ParallelDecoder) -> None:
    """Every value in memory of its own, laid out as torch lays out.

    A saved model's are mapped and lie as in its file. Products of values that lie elsewhere may
    differ in the last bit, and a resumed run reads another file than the one that began.
    """
    for value in (*model.parameters(), *model.buffers()):
        value.data = value.data.clone()


def _scalars(model: ParallelDecoder) -> list[nn.Parameter]:
    return [p for _, p in learned_parameters(model) if p.dim() == 0]


def place_trunk(
    model: ParallelDecoder, dtype: torch.dtype, device: torch.device
) -> dict[str, Tensor] | None:
    """The frozen part on the device, in the compute dtype.

    Returns it as it was given, where rounding would lose it: a trunk that came from no file.
    """
    given = None
    rounds = dtype != torch.float32
    if rounds and model.trunk_identity is not None and model.trunk_identity.source is None:
        given = {name: value.detach().clone() for name, value in model.trunk.state_dict().items()}
    model.trunk.to(device=device, dtype=dtype)
    return given
