"""The sections of the model: trunk, lanes, planner, reads, notes, heads.

Paper: §3, Table 4.
"""

from typing import Annotated

from pydantic import Field, model_validator

from pdt.config.node import Count, Strict, require_divides
from pdt.terms import CodebookStart, LaneBank, NodeTarget, NotesCondition, RopeScaling, TrunkFamily


class RopeConfig(Strict):
    """Rotary positions, in the parameters of the family's own configuration."""

    theta: Annotated[float, Field(gt=0)]
    scaling: RopeScaling = RopeScaling.NONE
    factor: Annotated[float, Field(gt=0)] = 1.0
    original_positions: Count | None = None
    """Positions the trunk was pretrained with (llama3, yarn)."""
    low_frequency_factor: float | None = None
    high_frequency_factor: float | None = None
    """llama3 only."""
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    """yarn only."""

    @model_validator(mode="after")
    def _complete(self) -> "RopeConfig":
        if (
            self.scaling in (RopeScaling.LLAMA3, RopeScaling.YARN)
            and self.original_positions is None
        ):
            raise ValueError(f"{self.scaling} scaling needs original_positions")
        if self.scaling is RopeScaling.LLAMA3 and (
            self.low_frequency_factor is None or self.high_frequency_factor is None
        ):
            raise ValueError("llama3 scaling needs low_frequency_factor and high_frequency_factor")
        return self


class TrunkShape(Strict):
    """The dimensions of a dense RoPE decoder."""

    family: TrunkFamily
    layers: Count
    width: Count
    query_heads: Count
    kv_heads: Count
    head_width: Count
    feed_forward: Count
    vocabulary: Count
    tied_head: bool
    norm_eps: Annotated[float, Field(gt=0)]
    max_positions: Count
    rope: RopeConfig

    @property
    def qk_norm(self) -> bool:
        return self.family is TrunkFamily.QWEN3

    @property
    def qkv_bias(self) -> bool:
        return self.family is TrunkFamily.QWEN2

    @model_validator(mode="after")
    def _divides(self) -> "TrunkShape":
        require_divides("query_heads", self.query_heads, "kv_heads", self.kv_heads)
        require_divides("head_width", self.head_width, "the two halves of a rotary pair", 2)
        return self


class TrunkConfig(Strict):
    """Which pretrained decoder is split, and its dimensions."""

    source: str | None = None
    """Hub id, local Hugging Face directory, or GGUF file; null for random weights."""
    revision: str | None = None
    """The hub commit; required when `source` is a hub id."""
    shape: TrunkShape


class LanesConfig(Strict):
    """The physical decoder axis."""

    count: Annotated[int, Field(ge=1, le=6)]
    fork_layer: Count
    """First layer that every lane owns a copy of; the layers below are one frozen trunk."""
    block_tokens: Count
    """τ: lane-local tokens between two barriers."""
    bank: LaneBank = LaneBank.FULL
    """A lane owns every upper projection whole, or a change of low rank over one frozen copy."""
    rank: Count | None = None
    """Of that change."""
    shared: bool = False
    """One upper stack serves every lane. Not the paper's: a start that `pdt model part` gives each
    lane a copy of, and the control that asks what private stacks are worth."""

    @model_validator(mode="after")
    def _ranked(self) -> "LanesConfig":
        if (self.bank is LaneBank.LOW_RANK) != (self.rank is not None):
            raise ValueError("bank: low_rank needs a rank, and bank: full has none")
        return self


FROM_BEGINNINGS = (NodeTarget.BEFORE, NodeTarget.OPENING, NodeTarget.FIRST_WORDS)
"""Targets that a passage's first place tells."""


class PlannerConfig(Strict):
    """The set planner of §3.2."""

    nodes: Count
    width: Count
    layers: Count
    heads: Count
    feed_forward: Count
    max_prompt_tokens: Count
    """A fail-fast ceiling; a source is never truncated to meet it."""
    targets: NodeTarget = NodeTarget.TEXT
    """What plan nodes are made from: their words, or the trunk's own states of what they own."""
    points: bool = False
    """Whether a node is a passage of the prompt that the planner points at. Not the paper's: in
    Eq. 2 a node is any vector."""
    prompt_layers: Annotated[int, Field(ge=0)] = 0
    """Layers that read the prompt in both directions before the queries do. The paper has none."""

    @model_validator(mode="after")
    def _divides(self) -> "PlannerConfig":
        require_divides("width", self.width, "heads", self.heads)
        if self.points and self.targets not in FROM_BEGINNINGS:
            raise ValueError(
                "a planner that points says where a passage begins, and that is not all of "
                f"targets: {self.targets}; choose {' or '.join(FROM_BEGINNINGS)}"
            )
        return self


class ReadsConfig(Strict):
    """Plan-KV and SNC: both are gated cross-attentions over memories of one width."""

    memory_width: Count
    width: Count
    heads: Count
    plan_gate: float
    notes_gate: float
    """Start of the residual gates, before the sigmoid."""
    plan_in_prompt: bool = True
    """Whether the prompt is read with the plan too. Else a lane has it in Plan-KV alone, and
    nothing of it stays once it is taken away."""
    node_positions: Annotated[float, Field(gt=0)] = 0.02
    """How large the positions of plan nodes start, beside memories whose values are about one."""
    in_state_units: bool = False
    """Whether a read asks and answers in units of the state's own size. Not the paper's: a trunk
    whose states are large hears a read sooner."""

    @model_validator(mode="after")
    def _divides(self) -> "ReadsConfig":
        require_divides("width", self.width, "heads", self.heads)
        return self


class NotesConfig(Strict):
    """The finite, delayed channel of §3.5."""

    codebooks: Count
    codes: Count
    window_blocks: Count
    condition: NotesCondition
    writer_norm: bool
    """A LayerNorm without parameters after the writer; the paper has none (docs/gaps.md)."""
    codebook_start: CodebookStart
    """Whether training begins with drawn codes or with codes taken from states it has written."""


class HeadsConfig(Strict):
    """The semantic heads of §5.2."""

    width: Count
    fact_width: Count
    """Width of the frozen text encoder that embeds facts."""
