"""The events of a generation, and the ledger."""

import json
from typing import Any

import pytest
import torch

from pdt.errors import UsageError
from pdt.generation.events import (
    Barrier,
    Done,
    FinishReason,
    LaneFinished,
    PlanReady,
    Round,
    as_json,
)
from pdt.generation.loop import start
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from tests.support.generations import (
    BLOCK,
    SETTINGS,
    byte_tokenizer,
    run,
    some_prompts,
    text_model,
)


@pytest.mark.paper("§3.6", "Fig. 3")
def test_events_come_in_the_order_of_the_loop(model: ParallelDecoder) -> None:
    events, done = run(start(model, some_prompts((9, 5)), SETTINGS))
    assert [type(e) for e in events[:3]] == [PlanReady, PlanReady, Round]
    rounds = [e for e in events if isinstance(e, Round)]
    barriers = [e for e in events if isinstance(e, Barrier)]
    assert [r.index for r in rounds] == list(range(SETTINGS.max_tokens))
    assert all(len(r.lanes) == 6 for r in rounds)
    assert [b.block for b in barriers] == [0, 1, 2, 3]
    for barrier in barriers:
        before = [e for e in events[: events.index(barrier)] if isinstance(e, Round)]
        assert len(before) == (barrier.block + 1) * BLOCK
        assert {(n.document, n.lane) for n in barrier.notes} == {
            (d, k) for d in range(2) for k in range(3)
        }
    ends = [e for e in events if isinstance(e, LaneFinished)]
    assert {e.reason for e in ends} == {FinishReason.LENGTH}
    assert len(ends) == 6
    assert isinstance(events[-1], Done)
    assert done.ledger.rounds == SETTINGS.max_tokens


@pytest.mark.paper("§3.2", "§3.6")
def test_the_planner_runs_once_and_the_prompt_is_read_once(
    model: ParallelDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"plan": 0, "read_prompt": 0, "open_lanes": 0}
    for name in calls:
        plain = getattr(ParallelDecoder, name)

        def counted(
            self: Any, *args: Any, _name: str = name, _plain: Any = plain, **kwargs: Any
        ) -> Any:
            calls[_name] += 1
            return _plain(self, *args, **kwargs)

        monkeypatch.setattr(ParallelDecoder, name, counted)
    run(start(model, some_prompts((9, 5)), SETTINGS))
    assert calls == {"plan": 1, "read_prompt": 1, "open_lanes": 1}


@pytest.mark.paper("§2.1", "§3.6")
def test_sections_stand_in_the_predicted_order(model: ParallelDecoder) -> None:
    events, done = run(start(model, some_prompts(), SETTINGS))
    ready = events[0]
    assert isinstance(ready, PlanReady)
    assert done.documents[0].lane_at_position == ready.lane_at_position
    assert sorted(done.documents[0].lane_at_position) == [0, 1, 2]


@pytest.mark.paper("§3.6", "Eq. 6")
def test_the_ledger_keeps_depth_arithmetic_memory_and_time_apart(model: ParallelDecoder) -> None:
    generation = start(model, some_prompts((9,)), SETTINGS)
    generation.writers[0][2]._settings = SETTINGS.model_copy(update={"max_tokens": 6})
    _, done = run(generation)
    ledger = done.ledger
    longest = SETTINGS.max_tokens
    assert ledger.lane_lengths == [[longest, longest, 6]]
    assert ledger.rounds == longest
    assert ledger.span_reductions == [(2 * longest + 6) / longest]
    assert ledger.span_reductions[0] <= 3
    shape, lanes = model.config.trunk.shape, 3
    token = 2 * shape.kv_heads * shape.head_width * 4
    assert ledger.shared_cache_bytes == 9 * 2 * token
    private = 9 * 2 * lanes * token + (longest - 1) * shape.layers * lanes * token
    assert ledger.private_cache_bytes == private
    assert {"plan", "prefill", "decode", "sample", "barrier", "total"} == set(ledger.seconds)
    assert ledger.seconds["barrier"] < ledger.seconds["total"]
    assert "speedup" not in json.dumps(ledger.as_json())
    assert all(0 < t < ledger.seconds["total"] for t in ledger.first_token_seconds[0])


def test_text_comes_in_pieces_that_join_to_the_whole() -> None:
    model, tokenizer = text_model(), byte_tokenizer()
    settings = GenerationSettings(max_tokens=40, temperature=2.0, seed=3, stop_at_eos=False)
    events, done = run(start(model, some_prompts(), settings, tokenizer=tokenizer))
    for section in done.documents[0].sections:
        pieces = [
            piece.text for e in events if isinstance(e, Round) for piece in e.lanes
            if piece.lane == section.lane
        ]  # fmt: skip
        pieces += [e.text for e in events if isinstance(e, LaneFinished) and e.lane == section.lane]
        assert "".join(pieces) == section.text == tokenizer.prose(section.tokens)


def test_a_lane_ends_at_its_own_eos_and_the_eos_is_not_text() -> None:
    model, tokenizer = text_model(), byte_tokenizer()
    end = tokenizer.eos_id
    model.trunk.embed_tokens.weight.data[end] *= 40  # a tied head now favours the end now and then
    settings = GenerationSettings(max_tokens=60, temperature=3.0, seed=1)
    _, done = run(start(model, some_prompts(), settings, tokenizer=tokenizer))
    reasons = {s.reason for s in done.documents[0].sections}
    assert FinishReason.EOS in reasons
    for section in done.documents[0].sections:
        assert "<end>" not in section.text
        if section.reason is FinishReason.EOS:
            assert section.tokens[-1] == end
            assert end not in section.tokens[:-1]


def test_a_stop_ends_the_run_cleanly_with_what_was_written(model: ParallelDecoder) -> None:
    seen = iter([False] * 5)
    generation = start(model, some_prompts(), SETTINGS, should_stop=lambda: next(seen, True))
    events, done = run(generation)
    assert {s.reason for s in done.documents[0].sections} == {FinishReason.INTERRUPTED}
    assert done.ledger.rounds == 6
    assert sum(isinstance(e, LaneFinished) for e in events) == 3


def test_every_event_is_json(model: ParallelDecoder) -> None:
    events, _ = run(start(model, some_prompts(), SETTINGS))
    kinds = [json.loads(json.dumps(as_json(event)))["event"] for event in events]
    assert set(kinds) == {"plan", "round", "barrier", "lane_finished", "done"}


def test_autograd_is_left_as_it_was_between_events(model: ParallelDecoder) -> None:
    for _ in start(model, some_prompts(), SETTINGS).events():
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("prompts", "says"),
    [
        ([], "no document"),
        ([[]], "The prompt is empty"),
        ([[], [1]], "document 0 is empty"),
        ([[1] * 129], "has 129 tokens; the limit is 128"),
        ([[1], [96]], "document 1 has a token outside the vocabulary"),
    ],
)
def test_a_prompt_that_cannot_be_is_refused_and_never_truncated(
    model: ParallelDecoder, prompts: list[list[int]], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        start(model, prompts, SETTINGS)


def test_sections_that_would_run_past_the_trunks_positions_are_refused(
    model: ParallelDecoder,
) -> None:
    with pytest.raises(UsageError, match="512 positions"):
        start(model, [[1] * 100], GenerationSettings(max_tokens=413))
