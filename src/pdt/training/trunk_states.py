"""The trunk's states of a batch, computed document by document or read from the cache.

A document always runs in one form: its prompt alone, then its sections in one call, ordered by
their tokens. So a state depends on nothing but the document, not on the batch around it, not on
the lanes its sections were given to; kept states and fresh ones are the same bits.

Paper: §3.1, §6.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.model.pdt import ParallelDecoder
from pdt.model.prompt import Prompt
from pdt.records.batch import RecordBatch
from pdt.training.trunk_cache import TrunkCache


@dataclass(frozen=True)
class TrunkStates:
    """What everything above the fork starts from; nothing below it has to run again."""

    prompt: Prompt
    """Without keys and values of the trunk: its part is over."""
    fork_BKTD: Tensor | None
    """Of the target tokens, zero on padding; None where no lane is rolled out."""


class TrunkReader:
    """Reads documents through the frozen trunk, each at most once where a cache keeps them."""

    def __init__(self, model: ParallelDecoder, cache: TrunkCache | None = None) -> None:
        self.model, self.cache = model, cache

    def read(self, batch: RecordBatch, *, with_targets: bool) -> TrunkStates:
        """States at the fork of all prompts, and of all sections where they are wanted."""
        prompts = [row[row >= 0] for row in batch.prompt_tokens_BS]
        sections = [[lane[lane >= 0] for lane in row] for row in batch.section_tokens_BKT]
        found = [
            self._document(prompt, lanes, with_targets)
            for prompt, lanes in zip(prompts, sections, strict=True)
        ]
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        h_BTD = _padded([prompt for prompt, _ in found], int(lengths.max()))
        place_BT = torch.arange(h_BTD.shape[1]).expand(h_BTD.shape[:2])
        valid = place_BT < lengths[:, None] if bool((lengths < h_BTD.shape[1]).any()) else None
        device = h_BTD.device
        prompt = Prompt(
            h_BTD,
            lengths.to(device),
            None if valid is None else valid.to(device),
            batch.prompt_tokens_BS[:, : h_BTD.shape[1]].clamp(min=0).to(device),
            (),
        )
        if not with_targets:
            return TrunkStates(prompt, None)
        B, K, T = batch.section_tokens_BKT.shape
        # In memory the lane comes first: each lane's rows are one piece for its own weights.
        rows = [found[b][1][k] for k in range(K) for b in range(B)]
        return TrunkStates(prompt, _padded(rows, T).unflatten(0, (K, B)).transpose(0, 1))

    def _document(
        self, prompt: Tensor, sections: Sequence[Tensor], with_targets: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """[S, D] of the prompt and [T, D] of each section, in the order the lanes have them."""
        order = sorted(range(len(sections)), key=lambda lane: sections[lane].tolist())
        ordered = [sections[lane] for lane in order]
        if self.cache is None:
            h, targets = read_document(self.model, prompt, ordered if with_targets else ())
        else:
            h, targets = self._cached(self.cache, prompt, ordered, with_targets)
        if not with_targets:
            return h, []
        place = {lane: position for position, lane in enumerate(order)}
        return h, [targets[place[lane]] for lane in range(len(sections))]

    def _cached(
        self, cache: TrunkCache, prompt: Tensor, ordered: Sequence[Tensor], with_targets: bool
    ) -> tuple[Tensor, list[Tensor]]:
        device = self.model.trunk.norm.weight.device
        key = cache.key([prompt.tolist(), *(tokens.tolist() for tokens in ordered)])
        kept = cache.load(key, with_targets=with_targets)
        if kept is not None:
            h, flat = kept
            sizes = [len(tokens) for tokens in ordered]
            return h.to(device), [] if flat is None else list(flat.to(device).split(sizes))
        # A prompt alone is not kept: the stage that follows will want the sections too.
        wanted = ordered if with_targets or cache.open else ()
        h, targets = read_document(self.model, prompt, wanted)
        if targets:
            cache.store(key, h, torch.cat(targets))
        return h, targets


@torch.no_grad()
def read_document(
    model: ParallelDecoder, prompt_T: Tensor, sections: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """States at the fork of one prompt and of the sections that continue it.

    Paper: §6: the trunk runs once over prompt and targets, outside autograd.
    """
    device = model.trunk.norm.weight.device
    prompt = model.read_prompt(prompt_T[None].to(device))
    if not sections:
        return prompt.h_BTD[0], []
    tokens_KT = torch.nn.utils.rnn.pad_sequence(list(sections), batch_first=True).to(device)
    past = [[segment] for segment in prompt.lower]
    fork_KTD = model.read_targets(past, prompt.lengths_B, tokens_KT[None])[0]
    return prompt.h_BTD[0], [h[: len(tokens)] for h, tokens in zip(fork_KTD, sections, strict=True)]


def _padded(rows: Sequence[Tensor], length: int) -> Tensor:
    """[rows, length, D] with zeros behind the shorter ones."""
    out = rows[0].new_zeros(len(rows), length, rows[0].shape[-1])
    for target, row in zip(out, rows, strict=True):
        target[: len(row)] = row
    return out
