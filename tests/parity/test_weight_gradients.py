"""Gradients of an upper weight, gathered over blocks, are the ones autograd sums block by block."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pdt.bench.train import sample_documents, train_packed
from pdt.config import PdtConfig, load_config
from pdt.model.pdt import ParallelDecoder
from pdt.training import weight_gradients
from pdt.training.peak import peak_of
from pdt.training.recompute import recompute_activations
from pdt.training.weight_gradients import _Rows
from tests.conftest import open_model

NEVER, ALL = 0, 10_000
"""No call has fewer rows than 0: the rows of none are left for later."""


def gradients(model: ParallelDecoder, rows: int, documents: int = 2) -> dict[str, Tensor]:
    """Of four blocks, the last of them partial, with products over `rows` rows a lane."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight_gradients, "ROWS", rows)
        train_packed(model, sample_documents(model.config, documents, 9, 14))
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


def check_gathered_equals_block_by_block(model: ParallelDecoder, rows: int) -> None:
    expected, found = gradients(model, NEVER), gradients(model, rows)
    assert found.keys() == expected.keys() and any("mlp.down_proj" in name for name in found)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-5, msg=name)


def with_biases() -> PdtConfig:
    return load_config("tiny", overrides=["trunk.shape.family=qwen2"])


@pytest.mark.paper("§6")
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("rows", [ALL, 20, 9])  # blocks have 8 rows a lane, the last has 4
def test_gathered_gradients_equal_those_summed_block_by_block(rows: int, recompute: bool) -> None:
    for config in (load_config("tiny"), with_biases()):
        model = open_model(config)
        recompute_activations(model, recompute)
        check_gathered_equals_block_by_block(model, rows)


def test_a_second_batch_adds_its_gradients_to_the_first(model: ParallelDecoder) -> None:
    once = gradients(model, ALL)
    train_packed(model, sample_documents(model.config, 2, 9, 14))
    twice = gradients(model, ALL)
    for name, gradient in twice.items():
        torch.testing.assert_close(gradient, 2 * once[name], atol=1e-6, rtol=1e-5, msg=name)


def test_a_frozen_weight_gathers_nothing(model: ParallelDecoder) -> None:
    model.lane_layers[0].decoder.mlp.requires_grad_(False)
    found = gradients(model, ALL)
    assert not any("lanes.0.decoder.mlp" in name for name in found)
    check_gathered_equals_block_by_block(model, ALL)


@pytest.mark.paper("Appendix A")
def test_gathering_holds_less_than_a_gradient_a_block() -> None:
    model = open_model(load_config("tiny"))
    sample = sample_documents(model.config, 1, 9, 16)

    def peak(rows: int) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(weight_gradients, "ROWS", rows)
            model.zero_grad(set_to_none=True)
            return peak_of(lambda: train_packed(model, sample))

    assert peak(ALL) < 0.9 * peak(NEVER)


def the_last_rows_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    plain = _Rows.take

    def take(self: _Rows) -> Tensor | None:
        self.inputs, self.gradients = self.inputs[:-1], self.gradients[:-1]
        return plain(self)

    patch.setattr(_Rows, "take", take)


def what_was_multiplied_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    plain = _Rows._multiply

    def multiply(self: _Rows) -> None:
        self.total_KOI = None
        plain(self)

    patch.setattr(_Rows, "_multiply", multiply)


@pytest.mark.parametrize(
    "mutate",
    [the_last_rows_are_forgotten, what_was_multiplied_is_forgotten],
    ids=lambda f: f.__name__,
)
def test_a_broken_gathering_fails_its_check(
    model: ParallelDecoder,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        check_gathered_equals_block_by_block(model, 20)
