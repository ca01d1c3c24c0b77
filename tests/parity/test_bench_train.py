"""The sides of `pdt bench train` do the same work, where they must."""

import pytest
import torch

from pdt.bench.train import (
    NAIVE,
    ONE_CALL,
    PACKED,
    bench_train,
    sample_documents,
    train_naive,
    train_one_call,
    train_packed,
)
from pdt.config import load_config
from pdt.model.pdt import ParallelDecoder
from tests.conftest import open_model


def gradients(model: ParallelDecoder) -> dict[str, torch.Tensor]:
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


@pytest.mark.paper("§6")
def test_the_naive_form_gives_the_loss_and_the_gradients_of_the_packed_rollout(
    model: ParallelDecoder,
) -> None:
    sample = sample_documents(model.config, 2, 9, 14)
    packed, ours = train_packed(model, sample), gradients(model)
    naive, theirs = train_naive(model, sample), gradients(model)
    torch.testing.assert_close(naive, packed, atol=1e-5, rtol=1e-5)
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], atol=1e-5, rtol=1e-4)


@pytest.mark.paper("§6")
def test_without_notes_one_call_is_the_packed_rollout() -> None:
    config = load_config("tiny", overrides=["notes.condition=no_dynamic"])
    closed = open_model(config)
    sample = sample_documents(config, 2, 9, 14)
    one = train_one_call(closed, sample)
    torch.testing.assert_close(one, train_packed(closed, sample), atol=1e-5, rtol=1e-5)
    opened = open_model(load_config("tiny"))
    assert not torch.allclose(train_packed(opened, sample), one, atol=1e-4), "notes were not read"


def test_copying_the_prompt_holds_more_memory() -> None:
    result = bench_train("tiny", documents=1, prompt_tokens=120, section_tokens=32, repeats=2)
    assert result.peaks[NAIVE] > 1.15 * result.peaks[PACKED]
    assert set(result.sides) == {PACKED, ONE_CALL, NAIVE} and result.rate(PACKED) > 0
