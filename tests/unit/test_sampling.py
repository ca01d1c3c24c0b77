"""Choosing a token as people expect."""

from collections import Counter

import pytest
import torch

from pdt.errors import UsageError
from pdt.generation.sampling import choose_token, lane_generator, penalize
from pdt.generation.settings import GenerationSettings, settings_from

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, -8.0])


def drawn(settings: GenerationSettings, count: int = 4000) -> Counter[int]:
    generator = lane_generator(0, 0)
    return Counter(choose_token(LOGITS, [], settings, generator) for _ in range(count))


def test_temperature_zero_takes_the_likeliest_and_the_first_of_equals() -> None:
    generator = lane_generator(0, 0)
    assert choose_token(LOGITS, [], GenerationSettings(), generator) == 0
    assert choose_token(torch.zeros(5), [], GenerationSettings(), generator) == 0


def test_draws_follow_the_softmax() -> None:
    counts = drawn(GenerationSettings(temperature=1.0), 20000)
    expected = torch.softmax(LOGITS, 0)
    for token, p in enumerate(expected.tolist()):
        assert counts[token] / 20000 == pytest.approx(p, abs=0.015)


def test_temperature_flattens() -> None:
    cold, hot = (drawn(GenerationSettings(temperature=t)) for t in (0.3, 5.0))
    assert cold[0] > 3700
    assert hot[4] > 60


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        (GenerationSettings(temperature=5.0, top_k=2), {0, 1}),
        (GenerationSettings(temperature=1.0, top_p=0.6), {0}),
        (GenerationSettings(temperature=1.0, top_p=0.7), {0, 1}),
        (GenerationSettings(temperature=1.0, min_p=0.3), {0, 1}),
        (GenerationSettings(temperature=1.0, min_p=1.0), {0}),
        (GenerationSettings(temperature=1.0, top_k=99, min_p=0.01), {0, 1, 2, 3}),
    ],
)
def test_filters_keep_what_they_say(settings: GenerationSettings, allowed: set[int]) -> None:
    assert set(drawn(settings)) == allowed


def test_the_repetition_penalty_lowers_what_was_written_whatever_its_sign() -> None:
    out = penalize(LOGITS, [0, 3], 2.0)
    assert out.tolist() == [1.0, 1.0, 0.0, -2.0, -8.0]
    settings = GenerationSettings(repetition_penalty=3.0)
    assert choose_token(LOGITS, [0], settings, lane_generator(0, 0)) == 1


def test_each_lane_has_its_own_stream_and_the_seed_fixes_it() -> None:
    def draws(seed: int, lane: int) -> list[float]:
        generator = lane_generator(seed, lane)
        return [float(torch.rand((), generator=generator)) for _ in range(8)]

    assert draws(1, 0) == draws(1, 0)
    assert draws(1, 0) != draws(1, 1)
    assert draws(1, 0) != draws(2, 0)


def test_greedy_and_sampled_take_the_same_number_of_draws() -> None:
    """So that a run can be continued under another temperature from the same place."""
    one, two = lane_generator(0, 0), lane_generator(0, 0)
    choose_token(LOGITS, [], GenerationSettings(), one)
    choose_token(LOGITS, [], GenerationSettings(temperature=1.0), two)
    assert torch.equal(one.get_state(), two.get_state())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("temperature=-1", "temperature"),
        ("top_p=0", "top_p"),
        ("top_k=0", "top_k"),
        ("max_tokens=0", "max_tokens"),
        ("temprature=1", "Known settings"),
        ("stop=['']", "stop"),
        ("seed=x", "seed"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        settings_from([text])


def test_named_values_win_over_texts_and_none_leaves_the_default() -> None:
    settings = settings_from(["seed=3", "top_k=5"], seed=4, temperature=None)
    assert (settings.seed, settings.top_k, settings.temperature) == (4, 5, 0.0)
