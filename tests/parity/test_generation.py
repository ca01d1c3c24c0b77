"""Every way to generate is the same text."""

import pytest
import torch

from pdt.config import load_config
from pdt.generation.events import FinishReason
from pdt.generation.loop import start
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.model.kernels.round import NativeRound
from pdt.model.pdt import ParallelDecoder
from tests.conftest import open_model
from tests.support.generations import BLOCK, SAMPLED, SETTINGS, edits, run, some_prompts, tokens_of
from tests.support.rollouts import roll


@pytest.mark.paper("§3.6", "Table 3", "Eq. 1")
@pytest.mark.parametrize("settings", [SETTINGS, SAMPLED], ids=["greedy", "sampled"])
def test_packed_equals_the_three_lanes_one_after_another(
    model: ParallelDecoder, settings: GenerationSettings
) -> None:
    (prompt,) = some_prompts()
    (packed,) = tokens_of(model, [prompt], settings)
    serial, bus = write_serially(model, prompt, settings)
    assert [list(lane) for lane in packed] == serial
    generation = start(model, [prompt], settings)
    run(generation)
    for ours, theirs in zip(generation.bus.blocks, bus.blocks, strict=False):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)
    assert len(generation.bus.blocks) == 4


@pytest.mark.paper("§3.6")
@pytest.mark.parametrize("settings", [SETTINGS, SAMPLED], ids=["greedy", "sampled"])
def test_a_batch_of_documents_equals_each_alone(
    model: ParallelDecoder, settings: GenerationSettings
) -> None:
    prompts = some_prompts((9, 4, 13))
    together = tokens_of(model, prompts, settings)
    for prompt, lanes in zip(prompts, together, strict=True):
        assert tokens_of(model, [prompt], settings) == [lanes]


@pytest.mark.paper("§6", "§7.3", "Fig. 3")
def test_generation_equals_teacher_forcing_on_its_own_output(model: ParallelDecoder) -> None:
    """Bus included, across several barriers: each token is the likeliest where it was written."""
    prompts = some_prompts((9, 6))
    generation = start(model, prompts, SETTINGS)
    run(generation)
    assert generation.plans is not None
    whole = 4 * BLOCK
    wrote = torch.tensor([[w.tokens[: whole + 1] for w in row] for row in generation.writers])
    with torch.no_grad():
        lengths = torch.tensor([9, 6])
        padded = torch.tensor([prompts[0], prompts[1] + [0] * 3])
        frontier = model.open_lanes(model.read_prompt(padded, lengths), generation.plans)
        first = frontier.h_BKD[:, :, None]
        h, bus = roll(model, frontier, wrote[:, :, :whole])
        logits = model.logits(torch.cat([first, h], dim=2))
    assert torch.equal(logits.argmax(-1), wrote)
    for ours, theirs in zip(generation.bus.blocks, bus.blocks, strict=True):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)


@pytest.mark.paper("§3.6")
def test_a_lane_at_its_end_changes_nothing_for_the_others() -> None:
    """One lane's third token is made its end: siblings go on as if it had gone on silently."""
    model = open_model()
    (prompt,) = some_prompts()
    free = start(model, [prompt], SETTINGS)
    run(free)
    short = start(model, [prompt], SETTINGS)
    end = short.writers[0][1]
    end._eos = frozenset(range(model.config.trunk.shape.vocabulary))
    _, done = run(short)
    assert end.reason is FinishReason.EOS
    assert len(end.tokens) == 1
    # Before any sibling could read a note, nothing is different at all.
    for lane in (0, 2):
        ours, theirs = short.writers[0][lane].tokens, free.writers[0][lane].tokens
        assert ours[: BLOCK + 1] == theirs[: BLOCK + 1]
    # From then on it is as if that lane's notes were removed.
    quiet = start(model, [prompt], SETTINGS, interventions=edits("remove-notes:1"))
    run(quiet)
    for lane in (0, 2):
        assert short.writers[0][lane].tokens == quiet.writers[0][lane].tokens
    assert done.ledger.lane_lengths == [[SETTINGS.max_tokens, 1, SETTINGS.max_tokens]]


def test_a_lanes_draws_do_not_move_when_a_sibling_stops_drawing() -> None:
    model = open_model()
    (prompt,) = some_prompts()
    closed = "close-gate"
    full = tokens_of(model, [prompt], SAMPLED, closed)[0]
    short = start(model, [prompt], SAMPLED, interventions=edits(closed))
    short.writers[0][0]._eos = frozenset(range(96))
    run(short)
    assert tuple(short.writers[0][1].tokens) == full[1]
    assert tuple(short.writers[0][2].tokens) == full[2]


def test_the_compiled_rounds_and_the_torch_layers_write_the_same_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = open_model()
    prompts = some_prompts((9, 5))
    compiled = tokens_of(model, prompts)
    monkeypatch.setattr(NativeRound, "fits", lambda *_: False)
    monkeypatch.setattr("pdt.model.kernels.library", lambda: None)
    assert tokens_of(model, prompts) == compiled


@pytest.mark.parametrize("lanes", [1, 2, 6])
def test_any_lane_count_generates(lanes: int) -> None:
    model = open_model(load_config("tiny", overrides=[f"lanes.count={lanes}"]))
    wrote = tokens_of(model, some_prompts((5, 7)))
    assert [len(row) for row in wrote] == [lanes, lanes]
