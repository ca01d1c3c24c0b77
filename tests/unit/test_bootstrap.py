"""Intervals over documents against known distributions."""

import random

import numpy as np
import pytest

from pdt.evaluation.measures.bootstrap import Bootstrap


@pytest.mark.paper("§7.1", "Table 3")
def test_intervals_have_the_coverage_of_a_known_distribution() -> None:
    """Means of 40 coin flips: a 95% interval should hold 0.5 in about 95 of 100 samples."""
    held = 0
    boot = Bootstrap(resamples=400, confidence=0.95, seed=0)
    for sample in range(200):
        draw = np.random.default_rng(sample).random(40)
        found = boot.mean({f"r{n}": float(value) for n, value in enumerate(draw)})
        assert found is not None
        held += found.low <= 0.5 <= found.high
    assert 0.90 <= held / 200 <= 0.985


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error() -> None:
    values = np.random.default_rng(3).normal(size=400)
    boot = Bootstrap(resamples=10_000, confidence=0.95, seed=1)
    found = boot.mean({f"r{n}": float(v) for n, v in enumerate(values)})
    assert found is not None
    error = values.std() / 20
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


@pytest.mark.paper("§7.1")
def test_a_difference_is_paired_by_document() -> None:
    """b is a + 1 in every document: the difference is certain, however wide a is."""
    a = {f"r{n}": float(n) for n in range(20)}
    b = {name: value + 1 for name, value in a.items()}
    boot = Bootstrap(resamples=500, confidence=0.95, seed=0)
    found = boot.difference(b, a)
    assert found is not None
    assert found.estimate == pytest.approx(1)
    assert found.high - found.low < 1e-9
    alone = boot.mean(a)
    assert alone is not None
    assert alone.high - alone.low > 1


def test_a_document_without_the_thing_measured_is_left_out() -> None:
    boot = Bootstrap(resamples=200, confidence=0.95, seed=0)
    found = boot.difference({"a": 1.0, "b": 2.0}, {"b": 1.0, "c": 9.0})
    assert found is not None
    assert (found.estimate, found.documents) == (1.0, 1)
    assert boot.mean({}) is None


def test_the_same_seed_gives_the_same_interval() -> None:
    values = {f"r{n}": random.Random(n).random() for n in range(30)}
    first, second = (Bootstrap(resamples=300, confidence=0.95, seed=5) for _ in range(2))
    assert first.mean(values) == second.mean(values)
