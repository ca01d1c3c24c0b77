"""From what a client asks to a generation that is ready to begin, every refusal before its turn."""

import re

from pdt.generation.interventions import SwapPlans
from pdt.generation.loop import Generation
from pdt.generation.replay import branch
from pdt.generation.replay import replay as again
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import trace_of
from pdt.generation.writer import Writer
from pdt.serve.limits import Limits
from pdt.serve.writing import Asked, Writing, parse_all
from pdt.sources.own_text import markdown_text
from pdt.web.refusals import Refusal

LONGEST_TOKEN = 40
"""Characters; no prose has tokens that long on average."""


def check_asked(asked: Asked, limits: Limits, *, fixed_order: bool) -> None:
    """What can be said without the model. `fixed_order`: the answer's places are told at once."""
    if asked.settings.max_tokens > limits.max_tokens:
        raise Refusal(
            400,
            f"max_tokens is {asked.settings.max_tokens}; a lane may be asked for "
            f"{limits.max_tokens} here.",
            param="max_tokens",
        )
    for name, text in (("source", asked.source), ("request", asked.request)):
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise Refusal(400, f"The {name} is not plain text: it holds zeros or half characters.")
    for spec in asked.interventions:
        if len(spec) > 80 or re.search(r"\d{10}", spec):
            raise Refusal(400, "An intervention is at most 80 characters, its numbers 9 digits.")
    for edit in parse_all(asked.interventions):
        if fixed_order and isinstance(edit, SwapPlans) and edit.from_block:
            raise Refusal(
                400,
                "A swap of plans after the first block changes the order of sections whose places "
                "have been told. Use /v1/pdt/generations, or swap from block 0.",
                param="pdt.interventions",
            )


def source_as_read(writer: Writer, source: str) -> str:
    """A client's text as `pdt generate` reads a file's: headings and paragraphs of Markdown.

    One that no prompt can hold is refused before anything looks through it.
    """
    most = LONGEST_TOKEN * writer.model.config.planner.max_prompt_tokens
    if len(source) > most or source.count("<!--") > 500:
        raise Refusal(
            400,
            f"The source has {len(source)} characters; the model reads "
            f"{writer.model.config.planner.max_prompt_tokens} tokens. Nothing is "
            "cut to fit: give a shorter source.",
            param="source",
        )
    text = markdown_text(source)
    if not text:
        raise Refusal(400, "The source holds no paragraph of prose.", param="source")
    return text


def begin(
    writer: Writer, writing: Writing, parent: Writing | None = None, digest: str | None = None
) -> None:
    """Tokenize and check; the generation runs when the engine comes to it.

    `parent` is the document that is branched from or replayed, `digest` the model's.
    """
    asked = writing.asked
    edits = parse_all(asked.interventions)
    generation: Generation
    if parent is not None and asked.replay_of is not None:
        assert parent.generation is not None
        writing.replayed = trace_of(parent.generation, digest)
        generation = again(writer.model, writing.replayed, writer.tokenizer)
        generation.should_stop = writing.stop.is_set
    elif parent is not None and asked.branch_of is not None:
        assert parent.generation is not None
        generation = branch(parent.generation, asked.branch_of[1], edits, writer.tokenizer)
        generation.should_stop = writing.stop.is_set
    else:
        check_room(writer, asked)
        generation = writer.begin(
            [(asked.source, asked.request)],
            asked.settings,
            interventions=edits,
            should_stop=writing.stop.is_set,
        )
    writing.generation = generation


def check_room(writer: Writer, asked: Asked) -> None:
    """What the model can hold, with the field that is to be changed."""
    tokens = len(writer.prompt(asked.source, asked.request))
    reads = writer.model.config.planner.max_prompt_tokens
    if tokens > reads:
        raise Refusal(
            400,
            f"Source and request have {tokens} tokens; the model reads {reads}.\n"
            "Nothing is cut to fit: give a shorter source.",
            param="source",
        )
    positions = writer.model.config.trunk.shape.max_positions
    if tokens + asked.settings.max_tokens > positions:
        raise Refusal(
            400,
            f"Source and request have {tokens} tokens, and each lane may write "
            f"{asked.settings.max_tokens}; the model has {positions} positions.\n"
            f"Here a lane can write {max(0, positions - tokens)}: ask for no more, or shorten "
            "the source.",
            param="max_tokens",
        )


def room_for(writer: Writer, source: str, request: str, settings: GenerationSettings) -> int:
    """New tokens a lane may write where the client names no number: what the trunk has room for."""
    positions = writer.model.config.trunk.shape.max_positions
    return min(settings.max_tokens, max(1, positions - len(writer.prompt(source, request))))
