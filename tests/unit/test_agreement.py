"""Agreement statistics against published worked examples and against other libraries."""

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from pdt.audit.agreement import (
    ANSWERS,
    STATISTICS,
    Pair,
    agreement,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    quartiles,
    raw_agreement,
)
from pdt.audit.answers import Answer
from pdt.evaluation.measures.bootstrap import Bootstrap

BOOT = Bootstrap(resamples=500, confidence=0.95, seed=0)


def table(*rows: list[int]) -> np.ndarray:
    """Counts of one pair of seats; answers that an example does not have are never given."""
    found = np.zeros((1, 4, 4))
    found[0, : len(rows), : len(rows)] = rows
    return found


def with_answers(counts: np.ndarray, answers: int) -> np.ndarray:
    """AC1 asks how many answers there are: the examples have two, our question has four."""
    return counts[:, :answers, :answers]


def test_cohens_kappa_is_that_of_his_own_example() -> None:
    # Cohen (1960), table 1, as frequencies of 200: κ = 0.492 (weights off), p_o = 0.70, p_e = 0.41.
    counts = table([88, 14, 18], [10, 40, 10], [2, 6, 12])
    assert raw_agreement(counts) == pytest.approx(0.70)
    assert cohen_kappa(counts) == pytest.approx(0.4915, abs=5e-5)


def test_kappa_is_low_and_ac1_high_where_one_answer_is_rare() -> None:
    # Gwet (2008): 118, 5, 2 and 0 of 125 give κ = -0.0234 and γ1 = 0.9408 (held below),
    # although the raters agree on 94.4%.
    counts = table([118, 5], [2, 0])
    assert raw_agreement(counts) == pytest.approx(0.944)
    assert cohen_kappa(counts) == pytest.approx(-0.0234, abs=5e-5)


def test_alpha_is_that_of_krippendorffs_example_of_two_observers() -> None:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", B: nominal data, two
    # observers, no missing data; twelve units, α = 0.692.
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    nominal_a = ["a", "a", "b", "b", "d", "c", "c", "c", "e", "d", "d", "a"]
    nominal_b = ["b", "a", "b", "b", "b", "c", "c", "c", "e", "d", "d", "d"]
    counts = np.zeros((1, 5, 5))
    names = sorted({*nominal_a, *nominal_b})
    for x, y in zip(nominal_a, nominal_b, strict=True):
        counts[0, names.index(x), names.index(y)] += 1
    assert krippendorff_alpha(counts) == pytest.approx(0.692, abs=5e-4)
    binary = np.zeros((1, 2, 2))
    for one, two in zip(first, second, strict=True):
        binary[0, one, two] += 1
    # The same, A: binary data, two observers; ten units, α = 0.095.
    assert krippendorff_alpha(binary) == pytest.approx(0.095, abs=5e-4)


def test_kappa_and_alpha_are_those_of_scikit_learn_and_krippendorff() -> None:
    draw = np.random.default_rng(0)
    for size in (30, 300):
        first = draw.integers(0, 4, size)
        second = np.where(draw.random(size) < 0.7, first, draw.integers(0, 4, size))
        counts = np.zeros((1, 4, 4))
        np.add.at(counts[0], (first, second), 1)
        assert cohen_kappa(counts) == pytest.approx(cohen_kappa_score(first, second))
        alpha = krippendorff.alpha([first, second], level_of_measurement="nominal")
        assert krippendorff_alpha(counts) == pytest.approx(alpha)


def test_with_more_seats_kappa_is_the_mean_over_pairs_weighted_by_items() -> None:
    one, two = table([20, 5], [10, 15])[0], table([5, 1], [1, 3])[0]
    both = cohen_kappa(np.stack([one, two]))
    alone = [float(cohen_kappa(part[None])) for part in (one, two)]
    assert both == pytest.approx((50 * alone[0] + 10 * alone[1]) / 60)


def pairs(*answers: tuple[str, str, str]) -> list[Pair]:
    return [Pair(name, (0, 1), Answer(first), Answer(second)) for name, first, second in answers]


def test_an_interval_is_over_documents_and_a_document_counts_with_all_its_items() -> None:
    found = agreement(
        pairs(
            *[("a", "yes", "yes")] * 9, ("a", "no", "no"), *[("b", "yes", "no")] * 5,
            *[("b", "no", "no")] * 5,
        ),
        BOOT,
    )  # fmt: skip
    raw = found["raw agreement"]
    assert raw is not None
    # Resamples of two documents: both a, both b, or one of each.
    assert (raw.estimate, raw.low, raw.high, raw.documents) == (0.75, 0.5, 1.0, 2)
    assert set(found) == set(STATISTICS)


def test_what_chance_cannot_correct_is_undefined_and_not_perfect() -> None:
    found = agreement(pairs(("a", "no", "no"), ("b", "no", "no")), BOOT)
    assert found["Cohen's κ"] is None
    assert found["Krippendorff's α"] is None
    ac1 = found["Gwet's AC1"]
    assert ac1 is not None and ac1.estimate == 1
    assert agreement([], BOOT) == dict.fromkeys(STATISTICS)


def test_ac1_follows_its_definition() -> None:
    draw = np.random.default_rng(1)
    counts = draw.integers(0, 20, (1, 4, 4)).astype(float)
    n = counts.sum()
    shares = [(counts[0, k].sum() + counts[0, :, k].sum()) / 2 / n for k in range(len(ANSWERS))]
    chance = sum(p * (1 - p) for p in shares) / (len(ANSWERS) - 1)
    raw = sum(counts[0, k, k] for k in range(4)) / n
    assert gwet_ac1(counts) == pytest.approx((raw - chance) / (1 - chance))
    assert gwet_ac1(with_answers(table([118, 5], [2, 0]), 2)) == pytest.approx(0.9408, abs=5e-5)


def test_quartiles() -> None:
    assert quartiles([1, 2, 3, 4, 5]) == (2, 3, 4)
    assert quartiles([]) is None
