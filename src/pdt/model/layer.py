"""One decoder layer: the trunk's own, and the physical upper layer of Fig. 2.

Paper: §3.3, Fig. 2.
"""

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from pdt.config import PdtConfig, TrunkShape
from pdt.model.attention import attend
from pdt.model.cache import LayerMemory
from pdt.model.gated_read import ReadMemory
from pdt.model.linear import SHARED, Bank, Linear, LowRankLinear
from pdt.model.plan_kv import PlanKV
from pdt.model.rope import Rotary
from pdt.model.snc import SharedNotes


class SelfAttention(nn.Module):
    """Causal grouped-query attention of a lane over the prompt and its own tokens."""

    def __init__(self, shape: TrunkShape, bank: Bank) -> None:
        super().__init__()
        self.head_width = shape.head_width
        query, kv = (n * shape.head_width for n in (shape.query_heads, shape.kv_heads))
        self.q_proj = bank.linear(shape.width, query, bias=shape.qkv_bias)
        self.k_proj = bank.linear(shape.width, kv, bias=shape.qkv_bias)
        self.v_proj = bank.linear(shape.width, kv, bias=shape.qkv_bias)
        self.o_proj = bank.linear(query, shape.width)
        if shape.qk_norm:
            self.q_norm: nn.Module = bank.norm(shape.head_width, shape.norm_eps)
            self.k_norm: nn.Module = bank.norm(shape.head_width, shape.norm_eps)
        else:
            self.q_norm, self.k_norm = nn.Identity(), nn.Identity()

    def forward(self, h_BKTD: Tensor, rotary: Rotary, memory: LayerMemory) -> Tensor:
        q = rotary.turn(self.q_norm(self._heads(self.q_proj(h_BKTD))))
        read = attend(q, memory.extend(*self.keys_values(h_BKTD, rotary)))  # [B, K, H, T, X]
        return self.o_proj(read.transpose(2, 3).flatten(3))

    def keys_values(self, h_BKTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor]:
        k = rotary.turn(self.k_norm(self._heads(self.k_proj(h_BKTD))))
        return k, self._heads(self.v_proj(h_BKTD))

    def _heads(self, x_BKTD: Tensor) -> Tensor:
        return x_BKTD.unflatten(-1, (-1, self.head_width)).transpose(2, 3)


class SwiGLU(nn.Module):
    """The feed-forward path of the supported families."""

    def __init__(self, shape: TrunkShape, bank: Bank) -> None:
        super().__init__()
        self.gate_proj = bank.linear(shape.width, shape.feed_forward)
        self.up_proj = bank.linear(shape.width, shape.feed_forward)
        self.down_proj = bank.linear(shape.feed_forward, shape.width)

    def forward(self, h_BKTD: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(h_BKTD)) * self.up_proj(h_BKTD))


class DecoderLayer(nn.Module):
    """A layer as pretrained: attention, then feed-forward, each behind a norm and a residual.

    Without a bank of its own it is the frozen trunk's, whose weights serve every lane.
    """

    def __init__(self, shape: TrunkShape, bank: Bank = SHARED) -> None:
        super().__init__()
        self.input_layernorm: nn.Module = bank.norm(shape.width, shape.norm_eps)
        self.self_attn = SelfAttention(shape, bank)
        self.post_attention_layernorm: nn.Module = bank.norm(shape.width, shape.norm_eps)
        self.mlp = SwiGLU(shape, bank)

    def forward(self, h_BKTD: Tensor, rotary: Rotary, memory: LayerMemory) -> Tensor:
        h_BKTD = h_BKTD + self.self_attn(self.input_layernorm(h_BKTD), rotary, memory)
        return h_BKTD + self.mlp(self.post_attention_layernorm(h_BKTD))

    def keys_values(self, h_BKTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor]:
        """What later tokens will read of these, without their own outputs."""
        return self.self_attn.keys_values(self.input_layernorm(h_BKTD), rotary)


def projections(shape: TrunkShape) -> DecoderLayer:
    """The projections of a layer alone: what changes of low rank stand on. Lanes own the norms."""
    layer = DecoderLayer(shape)
    layer.input_layernorm = layer.post_attention_layernorm = nn.Identity()
    layer.self_attn.q_norm = layer.self_attn.k_norm = nn.Identity()
    return layer


def stand_on(layer: DecoderLayer, base: DecoderLayer) -> None:
    """Put every change of low rank over the frozen projection of the same name."""
    for name, module in layer.named_modules():
        if isinstance(module, LowRankLinear):
            module.stand_on(cast(Linear, base.get_submodule(name)))


class LaneLayer(nn.Module):
    """Physical upper layer: private attention and feed-forward, then Plan-KV, then SNC.

    Paper: Fig. 2.
    """

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        lanes = config.lanes
        bank = Bank(None if lanes.shared else lanes.count, lanes.rank)
        self.decoder = DecoderLayer(config.trunk.shape, bank)
        self.plan_kv = PlanKV(config)
        self.snc = SharedNotes(config)

    def forward(
        self,
        h_BKTD: Tensor,
        rotary: Rotary,
        memory: LayerMemory,
        plan: ReadMemory | None,
        notes: ReadMemory | None,
    ) -> Tensor:
        h_BKTD = self.decoder(h_BKTD, rotary, memory)
        if plan is not None:
            h_BKTD = h_BKTD + self.plan_kv(h_BKTD, plan)
        if notes is None:  # the prompt and the first block have no notes to read
            return h_BKTD
        return h_BKTD + self.snc(h_BKTD, notes)
