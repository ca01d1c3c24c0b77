"""With drafts and without: the same tokens, ends, notes and caches."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from pdt.config import load_config
from pdt.generation.drafts import Draft, Lookup
from pdt.generation.events import Barrier, FinishReason, LaneFinished, Round
from pdt.generation.loop import Generation, start
from pdt.generation.replay import branch, differences, replay
from pdt.generation.rounds import RoundAsked, rounds_alone
from pdt.generation.settings import GenerationSettings
from pdt.generation.standing import Standing
from pdt.generation.trace import trace_of
from pdt.model.kernels.round import NativeRound
from pdt.model.packing import quantise
from pdt.model.pdt import Frontier, ParallelDecoder
from tests.conftest import open_model
from tests.parity.test_pack import together, tokens
from tests.support.generations import (
    BLOCK,
    SETTINGS,
    byte_tokenizer,
    edits,
    run,
    some_prompts,
    text_model,
)

GREEDY = SETTINGS.model_copy(update={"max_tokens": 8 * BLOCK + 2})
SAMPLED = GREEDY.model_copy(update={"temperature": 1.5, "seed": 11})
BOTH = pytest.mark.parametrize("settings", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
PROMPTS = some_prompts((9, 4, 13, 6))


@pytest.fixture(autouse=True)
def rows_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that drafting never stops, and nothing is timed."""
    monkeypatch.setenv("PDT_ROW_COST", "0")


class Foretold(Lookup):
    """Drafts what the lane is known to write, and something else at some places."""

    def __init__(self, lane: Sequence[int], seed: int) -> None:
        super().__init__([])
        self._lane, self._draw = list(lane), random.Random(seed)

    def draft(self, most: int) -> Draft:
        ahead = self._lane[len(self._tokens) :] + [1] * most
        size = self._draw.randint(0, most)
        return Draft(4, tuple(t if self._draw.random() < 0.8 else 7 for t in ahead[:size]))


def drafted(
    generation: Callable[[GenerationSettings], Generation], plain: Generation, seed: int = 0
) -> Generation:
    """The same again, with drafts that are mostly what the plain one wrote."""
    again = generation(plain.settings.model_copy(update={"drafts": 6}))
    for document, (row, wrote) in enumerate(zip(again.writers, plain.writers, strict=True)):
        for lane, (writer, known) in enumerate(zip(row, wrote, strict=True)):
            writer._lookup = Foretold(known.tokens, seed + 7 * document + lane)
    return again


def finished(generation: Generation) -> Generation:
    run(generation)
    return generation


def assert_same(drafting: Generation, plain: Generation, *, exact: bool = True) -> None:
    assert tokens(drafting) == tokens(plain)
    ends = [[w.reason for row in g.writers for w in row] for g in (drafting, plain)]
    assert ends[0] == ends[1]
    texts = [[w.section().text for row in g.writers for w in row] for g in (drafting, plain)]
    assert texts[0] == texts[1]
    assert len(drafting.bus.blocks) == len(plain.bus.blocks)
    for ours, theirs in zip(drafting.bus.blocks, plain.bus.blocks, strict=True):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)
        assert torch.equal(ours.published_BK, theirs.published_BK)
        assert ours.written_BKE is not None and theirs.written_BKE is not None
        if exact:
            assert torch.equal(ours.written_BKE, theirs.written_BKE)


@pytest.mark.paper("§3.6")
@BOTH
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
@pytest.mark.parametrize("documents", [1, 3])
def test_drafts_change_no_token(
    settings: GenerationSettings, compiled: bool, documents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right and wrong drafts, lanes that accept different numbers; compiled, to the bit."""
    if not compiled:
        monkeypatch.setattr(NativeRound, "fits", lambda *_: False)
    model = open_model()

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[:documents], settings)

    plain = generation(settings)
    _, done = run(plain)
    for seed in range(3):
        again = drafted(generation, plain, seed)
        _, fewer = run(again)
        assert_same(again, plain, exact=compiled)
        assert fewer.ledger.rounds < done.ledger.rounds
        assert 0 < sum(map(sum, fewer.ledger.accepted_tokens))
        assert sum(map(sum, fewer.ledger.accepted_tokens)) < sum(
            map(sum, fewer.ledger.drafted_tokens)
        )
    assert done.ledger.accepted_tokens == [[0] * 3] * documents


@BOTH
@pytest.mark.parametrize(
    "overrides",
    [
        ["trunk.shape.family=llama", "trunk.shape.width=36", "trunk.shape.feed_forward=51"],
        ["trunk.shape.family=qwen2", "lanes.bank=low_rank", "lanes.rank=3"],
        ["lanes.count=1"],
        ["lanes.count=6", "trunk.shape.tied_head=false"],
    ],
)
def test_drafts_change_no_token_of_any_shape_of_model(
    overrides: list[str], settings: GenerationSettings
) -> None:
    model = open_model(load_config("tiny", overrides=overrides))

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[1:4], settings)

    plain = generation(settings)
    run(plain)
    again = drafted(generation, plain)
    run(again)
    assert_same(again, plain)


@BOTH
@pytest.mark.parametrize("bits", [4, 8])
def test_drafts_change_no_token_of_weights_in_blocks(
    bits: int, settings: GenerationSettings
) -> None:
    model = open_model(load_config("tiny", overrides=["lanes.bank=low_rank", "lanes.rank=3"]))
    quantise(model, bits)

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[1:3], settings)

    plain = generation(settings)
    run(plain)
    again = drafted(generation, plain)
    run(again)
    assert_same(again, plain)


@BOTH
def test_what_stands_in_the_prompt_is_drafted_and_saves_rounds(
    settings: GenerationSettings,
) -> None:
    """The lookup itself: a greedy tiny model repeats itself, and so finds its own text."""
    model = open_model(load_config("tiny", overrides=["lanes.count=1", "lanes.block_tokens=32"]))
    settings = settings.model_copy(update={"max_tokens": 96})
    plain = start(model, PROMPTS, settings)
    _, done = run(plain)
    again = start(model, PROMPTS, settings.model_copy(update={"drafts": 4}))
    _, fewer = run(again)
    assert_same(again, plain)
    if settings.temperature == 0:
        assert fewer.ledger.rounds < done.ledger.rounds
        assert fewer.ledger.accepted_per_round > 0


@pytest.mark.paper("§3.6", "Fig. 3")
@BOTH
def test_drafted_documents_that_come_and_go_write_what_each_writes_alone(
    settings: GenerationSettings,
) -> None:
    """Some of them draft and some do not, in the same rounds."""
    model = open_model()
    lengths = [BLOCK * 4 + 2, 3, BLOCK * 6, BLOCK + 1]

    def one(index: int) -> Callable[[GenerationSettings], Generation]:
        return lambda settings: start(
            model,
            [PROMPTS[index]],
            settings.model_copy(update={"max_tokens": lengths[index], "seed": index}),
            interventions=edits(*(["swap-plans:0,1@1"] if index == 2 else [])),
        )

    alone = [one(index)(settings) for index in range(4)]
    for generation in alone:
        run(generation)
    shared = [
        one(index)(plain.settings) if index == 3 else drafted(one(index), plain)
        for index, plain in enumerate(alone)
    ]
    together(model, shared, joins=[0, 0, 1, BLOCK])
    for ours, theirs in zip(shared, alone, strict=True):
        assert_same(ours, theirs)


@pytest.mark.paper("§7.1", "Fig. 3")
@pytest.mark.parametrize(
    "edit", ["swap-plans:0,2@1", "remove-notes:1", "mutate-code:0@1", "drop-node:1.0", "close-gate"]
)
def test_drafts_change_no_token_under_an_intervention_and_a_drafted_trace_replays(
    model: ParallelDecoder, edit: str
) -> None:
    def generation(settings: GenerationSettings) -> Generation:
        return start(model, [PROMPTS[0]], settings, interventions=edits(edit))

    plain = generation(SAMPLED)
    run(plain)
    again = drafted(generation, plain)
    run(again)
    assert_same(again, plain)
    trace = trace_of(again)
    assert trace.drafts is not None
    assert sum(trace.drafts.accepted[0]) > 0
    for drafts in (0, 3):
        settings = trace.settings.model_copy(update={"drafts": drafts})
        repeated = replay(model, trace.model_copy(update={"settings": settings}), None)
        run(repeated)
        assert differences(trace, repeated) == []
        assert differences(trace_of(repeated), again) == []


def test_an_edit_put_in_at_a_barrier_finds_all_lanes_there(model: ParallelDecoder) -> None:
    def generation(settings: GenerationSettings) -> Generation:
        return start(model, [PROMPTS[0]], settings)

    def run_edited(live: Generation) -> Generation:
        for event in live.events():
            if isinstance(event, Barrier) and event.block == 1:
                assert {len(writer.tokens) for writer in live.writers[0]} == {2 * BLOCK}
                live.intervene(edits("swap-plans:0,2"))
        return live

    plain = run_edited(generation(GREEDY))
    assert_same(run_edited(drafted(generation, plain)), plain)


def test_a_branch_drafts_what_is_decided_already(model: ParallelDecoder) -> None:
    """Up to its barrier a branch repeats known tokens: whole blocks a round."""
    settings = SAMPLED.model_copy(update={"drafts": 2 * BLOCK})
    first = start(model, [PROMPTS[0]], settings)
    run(first)
    other = branch(first, 6, [], None)
    _, done = run(other)
    assert tokens(other) == tokens(first)
    assert done.ledger.rounds < 6 + 1 + 2 * BLOCK + 2


@pytest.mark.parametrize("at", [1, BLOCK - 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK])
def test_an_end_within_a_draft_is_the_end(at: int) -> None:
    """Inside a block, and where it completes one: then its note is published, as it was."""
    model = open_model()

    def generation(settings: GenerationSettings) -> Generation:
        made = start(model, PROMPTS[:2], settings)
        writer = made.writers[0][1]
        writer.take = lambda logits: ended(writer, logits, at)  # type: ignore[method-assign,assignment]
        return made

    def ended(writer: Any, logits: torch.Tensor, at: int) -> str:
        text = type(writer).take(writer, logits)
        if len(writer.tokens) == at:
            writer.reason = FinishReason.EOS
        return text

    plain = generation(GREEDY)
    run(plain)
    assert len(plain.writers[0][1].tokens) == at
    for seed in range(4):
        again = drafted(generation, plain, seed)
        run(again)
        assert_same(again, plain)


@pytest.mark.parametrize("limit", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_limit_within_a_draft_is_the_limit(limit: int) -> None:
    model = open_model()
    short = SAMPLED.model_copy(update={"max_tokens": limit})

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[:2], settings)

    plain = generation(short)
    run(plain)
    for seed in range(3):
        again = drafted(generation, plain, seed)
        run(again)
        assert_same(again, plain)
        assert again.ledger.lane_lengths == [[limit] * 3] * 2


@BOTH
def test_a_stop_string_within_a_draft_ends_the_lane(settings: GenerationSettings) -> None:
    """Stop strings of one and two characters of each lane's own text; its pieces are the same."""
    model, tokenizer = text_model(), byte_tokenizer()

    def text_of(generation: Generation) -> list[str]:
        return [writer.section().text for row in generation.writers for writer in row]

    free = start(model, PROMPTS[:2], settings, tokenizer=tokenizer)
    run(free)
    stops = {text[n : n + 2] for text in text_of(free) for n in (3, 9) if len(text) > n + 2}
    for stop in sorted(stops):
        with_stop = settings.model_copy(update={"stop": (stop,)})

        def generation(settings: GenerationSettings) -> Generation:
            return start(model, PROMPTS[:2], settings, tokenizer=tokenizer)

        plain = generation(with_stop)
        said, _ = run(plain)
        again = drafted(generation, plain)
        heard, _ = run(again)
        assert_same(again, plain)
        for lane in range(3):
            assert pieces(said, lane) == pieces(heard, lane)


def pieces(events: Sequence[object], lane: int) -> list[tuple[int, str]]:
    """What one lane of the first document was heard to say, token by token."""
    found: list[tuple[int, str]] = []
    for event in events:
        if isinstance(event, Round):
            found += [(t.token, t.text) for t in event.lanes if (t.document, t.lane) == (0, lane)]
        if isinstance(event, LaneFinished) and (event.document, event.lane) == (0, lane):
            found.append((-1, event.text))
    return found


def frontier_of(generation: Generation) -> tuple[Frontier, list[RoundAsked]]:
    """Run to the end, and keep what was asked for."""
    asked: list[RoundAsked] = []
    running, answer_to, answer = generation.run(), rounds_alone(generation.model), None
    with torch.inference_mode():
        while True:
            try:
                said = running.send(answer)
            except StopIteration:
                return asked[0].frontier, asked
            answer = None
            if isinstance(said, RoundAsked):
                end = generation._block_end
                for counts, row in zip(said.counts_BK, said.frontier.taken.counts_BK, strict=True):
                    assert all(n + had <= end for n, had in zip(counts, row, strict=True))
                asked.append(said)
                answer = answer_to(said)


@pytest.mark.paper("§3.6", "Fig. 3")
@BOTH
def test_a_wrong_draft_leaves_no_trace_in_the_caches_and_none_passes_a_barrier(
    settings: GenerationSettings,
) -> None:
    model = open_model()

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[:2], settings)

    plain = generation(settings)
    ours, _ = frontier_of(plain)
    theirs, asked = frontier_of(drafted(generation, plain))
    assert ours.taken.counts_BK == theirs.taken.counts_BK
    for one, other in zip([*ours.lower, *ours.upper], [*theirs.lower, *theirs.upper], strict=True):
        for left, right in zip(one.past, other.past, strict=True):
            assert torch.equal(left.k, right.k)
            assert torch.equal(left.v, right.v)
    assert any(len(set(counts)) > 1 for one in asked for counts in one.counts_BK)


# What a test of equality is worth: each of these breaks what drafts rest on.


def a_wrong_token_is_kept(patch: pytest.MonkeyPatch) -> None:
    plain = Standing.take_in

    def kept(self: Standing, h_TD: torch.Tensor, logits_TV: torch.Tensor) -> None:
        plain(self, h_TD, logits_TV)
        if len(h_TD) > 1:  # the second row is taken for the first, as if its draft were right
            self._scored_TV = torch.cat([logits_TV[1:], logits_TV[-1:]])

    patch.setattr(Standing, "take_in", kept)


def a_rejected_token_stays_in_the_cache(patch: pytest.MonkeyPatch) -> None:
    plain = Generation._choose

    def stays(self: Generation, frontier: Frontier) -> Any:
        held = [list(row) for row in frontier.taken.counts_BK]
        said = plain(self, frontier)
        frontier.taken.counts_BK[:] = held
        return said

    patch.setattr(Generation, "_choose", stays)


def the_state_of_a_rejected_token_is_published(patch: pytest.MonkeyPatch) -> None:
    plain = Standing.take_in

    def last(self: Standing, h_TD: torch.Tensor, logits_TV: torch.Tensor) -> None:
        plain(self, h_TD.flip(0), logits_TV)

    patch.setattr(Standing, "take_in", last)


def every_draft_takes_a_random_number(patch: pytest.MonkeyPatch) -> None:
    plain = Standing.next_run

    def drawing(self: Standing, *rest: Any) -> list[int]:
        run = plain(self, *rest)
        for _ in run[1:]:
            torch.rand((), generator=self.writer._generator, dtype=torch.float64)
        return run

    patch.setattr(Standing, "next_run", drawing)


def a_lane_does_not_wait_at_the_barrier(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Standing,
        "next_run",
        lambda self, limit, drafting, rows, plain=Standing.next_run: plain(
            self, limit + (2 if drafting else 0), drafting, rows
        ),
    )


@pytest.mark.parametrize(
    "mutate",
    [
        a_wrong_token_is_kept,
        a_rejected_token_stays_in_the_cache,
        the_state_of_a_rejected_token_is_published,
        every_draft_takes_a_random_number,
        a_lane_does_not_wait_at_the_barrier,
    ],
)
def test_broken_drafts_are_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model()

    def generation(settings: GenerationSettings) -> Generation:
        return start(model, PROMPTS[:2], settings)

    plain = generation(SAMPLED)
    run(plain)
    mutate(monkeypatch)
    again = drafted(generation, plain)
    with pytest.raises((AssertionError, IndexError)):
        assert_same(finished(again), plain)
