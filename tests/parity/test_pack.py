"""Documents that share their rounds write what each writes alone."""

import pytest
import torch

from pdt.config import load_config
from pdt.generation.events import Barrier, Done, Event, Intervened
from pdt.generation.loop import Generation, start
from pdt.generation.pack import Pack
from pdt.generation.replay import differences, replay
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import trace_of
from pdt.model.kernels.round import NativeRound
from pdt.model.pdt import ParallelDecoder
from tests.conftest import open_model
from tests.support.generations import BLOCK, SAMPLED, SETTINGS, edits, run, some_prompts

PROMPTS = some_prompts((9, 4, 13, 6, 11, 5, 8))


def together(
    model: ParallelDecoder, generations: list[Generation], joins: list[int]
) -> dict[str, list[Event]]:
    """Events of each; the i-th joins once `joins[i]` shared rounds have been run."""
    pack, said, rounds = Pack(model), {str(i): list[Event]() for i in range(len(generations))}, 0
    waiting = list(range(len(generations)))
    while waiting or len(pack):
        for i in [i for i in waiting if joins[i] <= rounds]:
            waiting.remove(i)
            pack.join(str(i), generations[i])
        here = [name for name in said if name in pack]
        for name in here:
            while name in pack and (event := pack.next_event(name)) is not None:
                said[name].append(event)
        for name, first in pack.round([name for name in here if name in pack]):
            assert not isinstance(first, Exception)
            said[name].append(first)
        rounds += 1
    return said


def tokens(generation: Generation) -> list[list[int]]:
    return [list(writer.tokens) for row in generation.writers for writer in row]


@pytest.mark.paper("§3.6")
@pytest.mark.parametrize("settings", [SETTINGS, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
def test_documents_that_come_and_go_write_what_each_writes_alone(
    settings: GenerationSettings, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token for token and code for code, with other lengths, other ends and another's edits."""
    if not compiled:
        monkeypatch.setattr(NativeRound, "fits", lambda *_: False)
    model = open_model()
    lengths = [BLOCK * 4 + 2, 3, BLOCK * 2, 1, BLOCK + 1, BLOCK * 3, BLOCK * 4]

    def generations() -> list[Generation]:
        return [
            start(
                model,
                [prompt],
                settings.model_copy(update={"max_tokens": length, "seed": index}),
                interventions=edits(*(["swap-plans:0,1@1"] if index == 2 else [])),
            )
            for index, (prompt, length) in enumerate(zip(PROMPTS, lengths, strict=True))
        ]

    alone, shared = generations(), generations()
    events = [run(generation)[0] for generation in alone]
    said = together(model, shared, joins=[0, 0, 1, BLOCK, BLOCK + 2, BLOCK + 2, 2 * BLOCK])
    for index, (one, other) in enumerate(zip(alone, shared, strict=True)):
        assert tokens(one) == tokens(other)
        assert [type(event) for event in said[str(index)]] == [type(e) for e in events[index]]
        for ours, theirs in zip(one.bus.blocks, other.bus.blocks, strict=True):
            assert torch.equal(ours.codes_BKM, theirs.codes_BKM)
            assert torch.equal(ours.vectors_BKE, theirs.vectors_BKE)


@pytest.mark.parametrize("overrides", [["lanes.count=6"], ["lanes.bank=low_rank", "lanes.rank=3"]])
def test_any_shape_of_model_shares_rounds(overrides: list[str]) -> None:
    model = open_model(load_config("tiny", overrides=overrides))
    alone = [start(model, [prompt], SETTINGS) for prompt in PROMPTS[:4]]
    shared = [start(model, [prompt], SETTINGS) for prompt in PROMPTS[:4]]
    for generation in alone:
        run(generation)
    together(model, shared, joins=[0, 2, 4, 6])
    assert [tokens(one) for one in alone] == [tokens(one) for one in shared]


def test_one_that_leaves_or_waits_at_a_barrier_changes_nothing_for_the_others() -> None:
    model = open_model()
    alone = [start(model, [prompt], SETTINGS) for prompt in PROMPTS[:3]]
    shared = [start(model, [prompt], SETTINGS) for prompt in PROMPTS[:3]]
    for generation in alone:
        run(generation)
    pack, rounds, paused = Pack(model), 0, None
    for index, generation in enumerate(shared):
        pack.join(str(index), generation)
    while len(pack):
        waits = paused is not None and rounds < paused + 7  # the others go on meanwhile
        here = [name for name in ("0", "1", "2") if name in pack and not (waits and name == "1")]
        for name in here:
            while name in pack and pack.next_event(name) is not None:
                pass
        first = dict(pack.round([name for name in here if name in pack]))
        if isinstance(first.get("1"), Barrier) and paused is None:
            paused = rounds
        if rounds == 5:
            pack.leave("2")
        rounds += 1
    assert paused is not None
    assert tokens(shared[0]) == tokens(alone[0])
    assert tokens(shared[1]) == tokens(alone[1])
    assert len(shared[2].writers[0][0].tokens) < SETTINGS.max_tokens


@pytest.mark.paper("§7.1", "Fig. 3")
@pytest.mark.parametrize(
    "edit", ["swap-plans:0,2", "remove-notes:1", "mutate-code:0@1", "drop-node:1.0"]
)
def test_an_edit_put_in_at_a_barrier_is_the_edit_given_before_and_replays(
    model: ParallelDecoder, edit: str
) -> None:
    live = start(model, [PROMPTS[0]], SETTINGS)
    said: list[Event] = []
    for event in live.events():
        said.append(event)
        if isinstance(event, Barrier) and event.block == 1:
            live.intervene(edits(edit))
    (seen,) = [event for event in said if isinstance(event, Intervened)]
    assert seen.block == 2
    untouched = start(model, [PROMPTS[0]], SETTINGS)
    run(untouched)
    assert tokens(untouched) != tokens(live)
    again = replay(model, trace_of(live), None)
    run(again)
    assert differences(trace_of(live), again) == []
    assert isinstance(said[-1], Done)
