"""Small generations on a tiny model, with a tokenizer made for the test."""

from functools import cache

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pdt.config import load_config
from pdt.generation.events import Done, Event
from pdt.generation.interventions import Intervention, parse_intervention
from pdt.generation.loop import Generation, start
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.tokenizer import StudentTokenizer
from tests.conftest import open_model

BLOCK = load_config("tiny").lanes.block_tokens
SETTINGS = GenerationSettings(max_tokens=4 * BLOCK + 2, stop_at_eos=False)
SAMPLED = SETTINGS.model_copy(update={"temperature": 1.5, "seed": 11})


@cache
def byte_tokenizer(vocabulary: int = 300) -> StudentTokenizer:
    """A byte-level BPE trained on a few words: one character may be many tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(["the siege of the town lasted for the winter"] * 20, trainer)
    return StudentTokenizer.in_memory(tokenizer, eos="<end>")


def text_model(seed: int = 1, **lanes: int) -> ParallelDecoder:
    """A tiny open model whose vocabulary is the byte tokenizer's."""
    size = byte_tokenizer().vocabulary
    overrides = [f"trunk.shape.vocabulary={size}", "records.tokenizer.eos=<end>"]
    overrides += [f"lanes.{name}={value}" for name, value in lanes.items()]
    return open_model(load_config("tiny", overrides=overrides), seed=seed)


def some_prompts(lengths: tuple[int, ...] = (9,)) -> list[list[int]]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randint(90, (n,), generator=generator).tolist() for n in lengths]


def run(generation: Generation) -> tuple[list[Event], Done]:
    events = list(generation.events())
    assert isinstance(events[-1], Done)
    return events, events[-1]


def edits(*texts: str) -> list[Intervention]:
    return [parse_intervention(text) for text in texts]


def tokens_of(
    model: ParallelDecoder,
    prompts: list[list[int]],
    settings: GenerationSettings = SETTINGS,
    *interventions: str,
) -> list[list[tuple[int, ...]]]:
    """Tokens by document and lane."""
    generation = start(model, prompts, settings, interventions=edits(*interventions))
    run(generation)
    return [[tuple(writer.tokens) for writer in row] for row in generation.writers]
