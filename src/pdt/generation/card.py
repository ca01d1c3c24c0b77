"""What a model was trained for, and what to hear before it writes about something else."""

from dataclasses import dataclass

import torch

from pdt.config import Range
from pdt.model.pdt import ParallelDecoder
from pdt.terms import TeacherKind
from pdt.tokenizer import StudentTokenizer

MOST_PIECES = 2.0
"""Tokens a word: the nano tokenizer is made of Chronicle's words, and spells out all others."""


@dataclass(frozen=True)
class Card:
    """Read off a model's configuration and weights."""

    lanes_trained: bool
    """They differ or read their plans; untrained ones are equal copies of the pretrained layers."""
    corpus: TeacherKind
    """Who taught its documents."""
    source_tokens: Range
    """How long the sources of its records are."""
    prompt_format: str
    """How source and request are laid out."""


def card_of(model: ParallelDecoder) -> Card:
    """The model's card."""
    records = model.config.records
    return Card(
        lanes_trained=_trained(model),
        corpus=model.config.teacher.kind,
        source_tokens=records.limits.source_tokens,
        prompt_format=records.prompt_format,
    )


def remark(model: ParallelDecoder, tokenizer: StudentTokenizer, source: str) -> str | None:
    """One line for whoever is about to read what this model writes of this source, if need be."""
    card = card_of(model)
    if not card.lanes_trained:
        return (
            "The lanes of this model are untrained copies of one decoder: greedy, they write the "
            "same text. Train them (`pdt train run`), or see them apart with --temperature 0.8."
        )
    if card.corpus is not TeacherKind.CHRONICLE:
        return None
    tokens = len(tokenizer.encode(source).ids)
    pieces = tokens / max(1, len(source.split()))
    if card.source_tokens.holds(tokens) and pieces <= MOST_PIECES:
        return None
    return (
        f"This model knows Chronicle's invented histories of {card.source_tokens.min} to "
        f"{card.source_tokens.max} tokens and nothing else; this source has {tokens}, {pieces:.1f} "
        "a word, so expect noise. `pdt chronicle write --study nano --split test --count 1 --out "
        "runs/one` makes a source that it knows."
    )


def _trained(model: ParallelDecoder) -> bool:
    """Untrained, a lane reads nothing of its plan and of its notes, and lanes are equal."""
    if model.config.lanes.count == 1:
        return True  # one lane is the decoder that it was made from
    ends = (model.lane_layers[0], model.lane_layers[-1])  # whoever trains, trains them all
    if any(bool(read.o_proj.weight.any()) for end in ends for read in (end.plan_kv, end.snc)):
        return True
    if model.config.lanes.shared:
        return False
    banks = (bank for layer in ends for bank in layer.decoder.parameters())
    return any(not torch.equal(bank[0], bank[1]) for bank in banks)
