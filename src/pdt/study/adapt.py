"""Adapt a small pretrained decoder to a corpus, as one plain decoder, before it is split.

It learns the words and to copy out of the source; ownership, plans and notes are learned later and
elsewhere. A killed adaptation goes on from its last state to the same weights.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pdt.config import TrunkShape
from pdt.errors import UsageError
from pdt.model.attention import Segment
from pdt.model.cache import SegmentList
from pdt.model.layer import DecoderLayer
from pdt.model.linear import RMSNorm
from pdt.model.rope import rotary
from pdt.objective.token import scoring_states, token_nll
from pdt.records.batch import RecordBatch, RecordShards
from pdt.study.state import restore_state, save_state


@dataclass(frozen=True)
class Adaptation:
    """How a trunk is adapted."""

    steps: int = 400
    batch_documents: int = 8
    learning_rate: float = 5e-4
    warmup_steps: int = 20
    prompt_weight: float = 0.5
    """Source and request count half: they are where to copy from, not what is written."""
    seed: int = 0
    save_steps: int = 50

    def learning_rate_at(self, step: int) -> float:
        cosine = 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * step / self.steps))
        return self.learning_rate * min(1.0, (step + 1) / self.warmup_steps) * cosine


class PlainDecoder(nn.Module):
    """The decoder before any split: every section is a continuation of its prompt."""

    def __init__(self, shape: TrunkShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.width, shape.norm_eps)

    def forward(self, batch: RecordBatch) -> tuple[Tensor, Tensor]:
        """-log p of each prompt token after the first, and of each section token."""
        prompt, sections = batch.prompt_tokens_BS, batch.section_tokens_BKT
        (B, S), T = prompt.shape, sections.shape[2]
        lengths_B = batch.prompt_valid_BS.sum(1)
        h_B1SD, read = self._run(prompt[:, None], torch.arange(S).expand(B, S), None)
        prompt_nll = token_nll(self._logits(h_B1SD[:, :, :-1]), prompt[:, None, 1:])
        past = [Segment(*pair, batch.prompt_valid_BS) for pair in read]
        h_BKTD, _ = self._run(sections, lengths_B[:, None] + torch.arange(T), past)
        before_BKD = h_B1SD[torch.arange(B), :, lengths_B - 1].expand(-1, sections.shape[1], -1)
        return prompt_nll, token_nll(self._logits(scoring_states(before_BKD, h_BKTD)), sections)

    def _run(
        self, tokens_BKT: Tensor, positions_BT: Tensor, past: list[Segment] | None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        turn = rotary(self.shape.rope, self.shape.head_width, positions_BT[:, None], torch.float32)
        h, read = self.embed_tokens(tokens_BKT.clamp(min=0)), []
        for index, layer in enumerate(self.layers):
            memory = SegmentList([] if past is None else [past[index]])
            h = layer(h, turn, memory)
            read.append((memory.past[-1].k, memory.past[-1].v))
        return h, read

    def _logits(self, h_BKTD: Tensor) -> Tensor:
        return F.linear(self.norm(h_BKTD), self.embed_tokens.weight)


def adapt(
    decoder: PlainDecoder,
    shards: RecordShards,
    how: Adaptation,
    work: Path,
    watch: Callable[[int, dict[str, float]], None] = lambda step, numbers: None,
) -> None:
    """Train every weight of the decoder for `how.steps` steps; `work` keeps the state."""
    optimizer = torch.optim.AdamW(
        decoder.parameters(), lr=how.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    weights = dict(decoder.named_parameters())
    if len(shards) < how.batch_documents:
        raise UsageError(
            f"{shards.directory} holds {len(shards)} training documents; a step takes "
            f"{how.batch_documents}.\nWrite a larger corpus."
        )
    bound = {"adaptation": asdict(how), "records": shards.digest}
    first = restore_state(work, weights, optimizer, bound)
    for step, documents in enumerate(_batches(shards, how)):
        if step == how.steps:
            break
        if step < first:
            continue
        section, prompt = _backward(decoder, documents, how.prompt_weight)
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = how.learning_rate_at(step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        watch(step + 1, {"section": section, "prompt": prompt})
        if (step + 1) % how.save_steps == 0 or step + 1 == how.steps:
            save_state(work, weights, optimizer, step + 1, bound)


def _backward(
    decoder: PlainDecoder, documents: Sequence[RecordBatch], prompt_weight: float
) -> tuple[float, float]:
    """The gradient of a step, and its mean losses. One document alone needs no padding."""
    prompts = sum(int(one.prompt_valid_BS.sum()) - 1 for one in documents)
    sections = sum(int(one.token_valid_BKT.sum()) for one in documents)
    section, prompt = 0.0, 0.0
    for one in documents:
        prompt_nll, nll = decoder(one)
        losses = nll.sum() / sections, prompt_nll.sum() / prompts
        (losses[0] + prompt_weight * losses[1]).backward()
        section, prompt = section + losses[0].item(), prompt + losses[1].item()
    return section, prompt


def _batches(shards: RecordShards, how: Adaptation) -> Iterator[list[RecordBatch]]:
    """The documents of each step; an epoch's incomplete last step is left out."""
    epoch = 0
    while True:
        one_by_one = shards.batches(1, seed=how.seed + epoch)
        for _ in range(len(shards) // how.batch_documents):
            yield list(islice(one_by_one, how.batch_documents))
        epoch += 1
