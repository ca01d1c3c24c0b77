"""What a text does not say itself, the command says beside it."""

from pdt.cli.generate import asides
from pdt.generation.loop import Generation, start
from tests.support.generations import (
    BLOCK,
    SETTINGS,
    byte_tokenizer,
    edits,
    run,
    some_prompts,
    text_model,
)

LONG = SETTINGS.model_copy(update={"max_tokens": 64})


def said(generation: Generation) -> list[str]:
    return asides(generation, run(generation)[1])


def test_a_lane_that_writes_nothing_is_named() -> None:
    model = text_model()
    model.trunk.norm.weight.data.zero_()  # all tokens are as likely: the first, the end, is taken
    assert said(start(model, some_prompts(), LONG, tokenizer=byte_tokenizer())) == [
        f"lane {lane} is blank" for lane in range(3)
    ]


def test_lanes_that_were_planned_without_a_node_are_named() -> None:
    model = text_model()
    generation = start(model, some_prompts(), SETTINGS, tokenizer=byte_tokenizer())
    assert said(generation) == []
    model.planner.validity.bias.data.fill_(-1e4)
    generation = start(model, some_prompts(), SETTINGS, tokenizer=byte_tokenizer())
    assert said(generation) == [
        "lanes 0, 1, 2 were planned without a node and have their likeliest"
    ]


def test_an_edit_after_the_last_block_is_named_and_one_in_it_is_not() -> None:
    model, blocks = text_model(), SETTINGS.max_tokens // BLOCK
    late = edits(f"zero-plan@{blocks + 1}", f"close-gate@{blocks}")
    generation = start(
        model, some_prompts(), SETTINGS, tokenizer=byte_tokenizer(), interventions=late
    )
    assert said(generation) == [
        f"no edit from block {blocks + 1} on: the text ends in block {blocks}"
    ]
