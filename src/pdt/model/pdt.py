"""The Parallel Decoder Transformer: one model, K causal frontiers.

The verbs of a generation, in order: `read_prompt`, `plan`, `open_lanes`; then per round `advance`
and `logits`; at a barrier `write_notes` and `read_notes`. Training knows its tokens: it calls
`read_targets` once and `advance_stacks` a block, and the other verbs are the same.

Paper: §3, Fig. 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.model.attention import Segment
from pdt.model.cache import Finished, LayerMemory, SegmentList, SuffixBuffer, Taken
from pdt.model.gated_read import ReadMemory
from pdt.model.heads import SemanticHeads
from pdt.model.layer import DecoderLayer, LaneLayer, stand_on
from pdt.model.passages import passages_from_each_place
from pdt.model.plan_kv import PlanMemory
from pdt.model.planner import PlanSet, SetPlanner
from pdt.model.prompt import Prompt
from pdt.model.rope import Rotary, rotary
from pdt.model.trunk import Trunk, TrunkIdentity
from pdt.notes.bus import NoteBlock, NotesBus
from pdt.notes.visibility import visibility_table
from pdt.notes.writer import NoteWriter
from pdt.tokenizer import StudentTokenizer


@dataclass
class Frontier:
    """Where K lanes stand: their caches, their plans, and how far they have written."""

    lengths_B: Tensor
    lower: list[LayerMemory]
    upper: list[LayerMemory]
    plan_reads: list[ReadMemory]
    h_BKD: Tensor
    """State of the last prompt token in each lane: it scores the first token of every section."""
    taken: Taken
    """Tokens each lane has taken in so far."""

    def starts(self) -> Tensor:
        """The position of each lane's next token, [B, K], or [B, 1] where all lanes agree."""
        counts = torch.tensor(self.taken.counts_BK, device=self.lengths_B.device)
        return self.lengths_B[:, None] + (counts[:, :1] if self.taken.same else counts)


class ParallelDecoder(nn.Module):
    """Frozen trunk, set planner, K physical stacks with Plan-KV and SNC, note writer, heads.

    Paper: §3.1 to §3.5, Fig. 1, Table 4.
    """

    def __init__(self, config: PdtConfig) -> None:
        super().__init__()
        self.config = config
        self.call_layer: Callable[..., Tensor] = LaneLayer.__call__
        """How an upper layer is called: what is kept for the backward pass is the caller's."""
        self.trunk_identity: TrunkIdentity | None = None
        self.tokenizer: StudentTokenizer | None = None
        bases = 0 if config.lanes.rank is None else config.upper_layers
        self.trunk = Trunk(config.trunk.shape, config.lanes.fork_layer, upper_layers=bases)
        self.planner = SetPlanner(config)
        self.plan_memory = PlanMemory(config)
        self.lanes = nn.ModuleList(LaneLayer(config) for _ in range(config.upper_layers))
        for layer, base in zip(self.lane_layers, self.trunk.upper, strict=False):
            stand_on(layer.decoder, cast(DecoderLayer, base))
        self.note_writer = NoteWriter(
            config.trunk.shape.width,
            config.reads.memory_width,
            config.notes.codebooks,
            config.notes.codes,
            norm=config.notes.writer_norm,
        )
        self.heads = SemanticHeads(config)

    @property
    def device(self) -> torch.device:
        """Where the model computes, and where its inputs must lie."""
        return self.trunk.norm.weight.device

    @property
    def lane_layers(self) -> list[LaneLayer]:
        """The physical upper layers, lowest first."""
        return cast(list[LaneLayer], list(self.lanes))

    # Before generation: once per document.

    def read_prompt(self, tokens_BT: Tensor, lengths_B: Tensor | None = None) -> Prompt:
        """Prefill below the fork, once for all lanes; shorter prompts are padded on the right."""
        B, T = tokens_BT.shape
        self._check_prompt(tokens_BT, lengths_B)
        if lengths_B is None:
            lengths_B = torch.full((B,), T, device=tokens_BT.device)
        positions = torch.arange(T, device=tokens_BT.device).expand(B, T)
        padded = bool((lengths_B < T).any())
        valid = positions < lengths_B[:, None] if padded else None
        memories: list[LayerMemory] = [SegmentList() for _ in self.trunk.layers]
        h = self.trunk(tokens_BT[:, None], self._rotary(positions[:, None]), memories)
        lower = [Segment(past.k, past.v, valid) for memory in memories for past in memory.past]
        return Prompt(h[:, 0], lengths_B, valid, tokens_BT, lower)

    def plan(self, prompt: Prompt) -> PlanSet:
        """Run the set planner, once. It sees prompt states only."""
        passages = None
        if self.config.planner.points:
            passages = passages_from_each_place(self.config, self.trunk, prompt)
        return self.planner(prompt.h_BTD, prompt.valid_BT, passages)

    def open_lanes(
        self, prompt: Prompt, plans: PlanSet, *, suffix_tokens: int | None = None
    ) -> Frontier:
        """Prefill the prompt above the fork in every lane, with its plan, and open the frontier.

        With `suffix_tokens` lanes write into buffers of that size (decoding); without, each call of
        `advance` adds a segment (training).
        """
        plan_reads = self.read_plans(plans)
        B, T = prompt.h_BTD.shape[:2]
        positions = torch.arange(T, device=prompt.h_BTD.device).expand(B, T)
        turn = self._rotary(positions[:, None])
        memories: list[LayerMemory] = [SegmentList() for _ in self.lane_layers[:-1]]
        # In memory the lane comes first: each lane's rows are one piece for its own weights.
        marked = self.config.reads.plan_in_prompt
        h = prompt.h_BTD.expand(self.config.prompt_lanes, -1, -1, -1).contiguous().transpose(0, 1)
        h_read = self._upper(h, turn, memories, plan_reads if marked else None, None)
        upper = [Segment(past.k, past.v, prompt.valid_BT) for m in memories for past in m.past]
        # Of the last layer later tokens read keys and values alone; only the prompt's last token,
        # which scores the first of every section, needs its output.
        top = self.lane_layers[-1]
        k, v = top.decoder.keys_values(h_read, turn)
        upper.append(Segment(k.contiguous(), v.contiguous(), prompt.valid_BT))
        # Where the prompt is read without the plan, that one token reads it in every layer.
        first = len(self.lane_layers) - 1 if marked else 0
        last = (prompt.lengths_B - 1).to(h.device)
        h_BK1D = (h_read if marked else h)[torch.arange(B, device=h.device), :, last, None]
        h_BK1D = h_BK1D.expand(-1, self.config.lanes.count, -1, -1)
        turn = self._rotary(last[:, None, None])
        for layer, segment, plan in list(zip(self.lane_layers, upper, plan_reads, strict=True))[
            first:
        ]:
            h_BK1D = layer(h_BK1D, turn, Finished(segment), plan, None)
        taken = Taken(B, self.config.lanes.count)
        return Frontier(
            lengths_B=prompt.lengths_B,
            lower=[self._memory(segment, suffix_tokens, taken) for segment in prompt.lower],
            upper=[self._memory(segment, suffix_tokens, taken) for segment in upper],
            plan_reads=plan_reads,
            h_BKD=h_BK1D[:, :, 0],
            taken=taken,
        )

    def read_plans(self, plans: PlanSet) -> list[ReadMemory]:
        """Per upper layer, keys and values of every lane's own outline."""
        memory_BKNE = self.plan_memory(plans.nodes_BKNP)
        return [layer.plan_kv.read_plan(memory_BKNE, plans.valid_BKN) for layer in self.lane_layers]

    # During generation: one grouped forward a round.

    def advance(
        self,
        frontier: Frontier,
        tokens_BKT: Tensor,
        notes: Sequence[ReadMemory] | None,
        counts_BK: Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """Take T tokens in every lane; return the last layer's states, before the final norm.

        With `counts_BK` a lane takes so many of its T, and the rest is padding.
        """
        B, K, T = tokens_BKT.shape
        counts_BK = counts_BK or [[T] * K] * B
        for memory in (*frontier.lower[:1], *frontier.upper[:1]):
            if isinstance(memory, SuffixBuffer):
                frontier.taken.check_room(memory.capacity, counts_BK)
        turn = self._turn_at(frontier.starts(), tokens_BKT)
        h_BKTD = self.trunk(tokens_BKT, turn, frontier.lower)
        h_BKTD = self._upper(h_BKTD, turn, frontier.upper, frontier.plan_reads, notes)
        frontier.taken.add(counts_BK)
        return h_BKTD

    # In training the tokens are known: below the fork they run ahead, above it block by block.

    def read_targets(
        self, lower: Sequence[Sequence[Segment]], start_B: Tensor, tokens_BKT: Tensor
    ) -> Tensor:
        """States at the fork of all tokens to come, in one call; `lower` stays as it is."""
        memories: list[LayerMemory] = [SegmentList(past) for past in lower]
        return self.trunk(tokens_BKT, self._turn_at(start_B[:, None], tokens_BKT), memories)

    def advance_stacks(
        self, frontier: Frontier, h_BKTD: Tensor, notes: Sequence[ReadMemory] | None
    ) -> Tensor:
        """`advance` above the fork alone, on states that `read_targets` has computed."""
        turn = self._turn_at(frontier.starts(), h_BKTD)
        frontier.taken.add_everywhere(h_BKTD.shape[2])
        return self._upper(h_BKTD, turn, frontier.upper, frontier.plan_reads, notes)

    def logits(self, h_BKTD: Tensor) -> Tensor:
        """Next-token logits of every lane."""
        return self.trunk.logits(h_BKTD)

    # At a barrier: all lanes together.

    def write_notes(self, h_BKD: Tensor, published_BK: Tensor) -> NoteBlock:
        """Quantize every lane's block-final state into its note."""
        return self.note_writer(h_BKD, published_BK)

    def read_notes(
        self, bus: NotesBus, block: int, may_read_KK: Tensor | None = None
    ) -> list[ReadMemory] | None:
        """Per upper layer, keys and values of the notes lanes may read while writing `block`."""
        if may_read_KK is None:
            may_read_KK = visibility_table(self.config.notes.condition, self.config.lanes.count)
        delay = self.config.records.note_delay_blocks
        window = bus.window(block, may_read_KK, self.config.notes.window_blocks, delay)
        if window is None:
            return None
        return [layer.snc.read_notes(window) for layer in self.lane_layers]

    def empty_bus(self) -> NotesBus:
        return NotesBus(self.config.lanes.count)

    def _upper(
        self,
        h_BKTD: Tensor,
        turn: Rotary,
        memories: Sequence[LayerMemory],
        plan_reads: Sequence[ReadMemory] | None,
        notes: Sequence[ReadMemory] | None,
    ) -> Tensor:
        """Through the layers that `memories` stands for, from the lowest."""
        for index, layer in enumerate(self.lane_layers[: len(memories)]):
            plan = None if plan_reads is None else plan_reads[index]
            note = None if notes is None else notes[index]
            h_BKTD = self.call_layer(layer, h_BKTD, turn, memories[index], plan, note)
        return h_BKTD

    def _turn_at(self, start_BK: Tensor, run_BKT: Tensor) -> Rotary:
        """Angles of a run of tokens or states that begins at `start_BK`; lane axis 1 or K."""
        offsets = torch.arange(run_BKT.shape[2], device=run_BKT.device)
        return self._rotary(start_BK.to(run_BKT.device)[..., None] + offsets)

    def _rotary(self, positions_BKT: Tensor) -> Rotary:
        shape = self.config.trunk.shape
        dtype = self.trunk.norm.weight.dtype
        return rotary(shape.rope, shape.head_width, positions_BKT, dtype)

    def _check_prompt(self, tokens_BT: Tensor, lengths_B: Tensor | None) -> None:
        B, T = tokens_BT.shape
        ceiling = self.config.planner.max_prompt_tokens
        if T > ceiling:
            raise UsageError(
                f"The prompt has {T} tokens; planner.max_prompt_tokens is {ceiling}.\n"
                "A source is never truncated: shorten it, or raise the ceiling."
            )
        if T == 0 or (lengths_B is not None and bool((lengths_B < 1).any())):
            raise UsageError(
                "A prompt of the batch is empty. Give every document at least one token."
            )
        if lengths_B is not None and (lengths_B.shape != (B,) or bool((lengths_B > T).any())):
            raise UsageError(
                f"lengths_B must be {B} numbers of at most {T}, got {lengths_B.tolist()}."
            )

    def _memory(self, prompt: Segment, suffix_tokens: int | None, taken: Taken) -> LayerMemory:
        if suffix_tokens is None:
            return SegmentList([prompt])
        return SuffixBuffer(prompt, self.config.lanes.count, suffix_tokens, taken)
