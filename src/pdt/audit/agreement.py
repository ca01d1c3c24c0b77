"""How far two annotators agree, beyond what chance would give; every interval is over documents.

A table counts pairs of answers. Raw agreement, Gwet's AC1 and Krippendorff's α read the table of
all pairs; Cohen's κ is of two seats, and with more than two it is the mean over pairs of seats,
weighted by items. The formulas work on many tables at once, since an interval needs ten thousand;
tests hold them equal to scikit-learn and krippendorff and to published examples.

Where almost every answer is the same, as with leakage, chance agreement by κ and α is near 1 and
both can be low, or even negative, while annotators almost always agree. AC1 does not break down so.

Paper: §7.2; E10 (intervals over documents).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pdt.audit.answers import Answer
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure

ANSWERS = tuple(Answer)
C = len(ANSWERS)
Statistic = Callable[[np.ndarray], np.ndarray]
"""From counts [..., P, C, C] by pair of seats and the two answers, to a number each."""

CAUTION = (
    "Where nearly all answers are alike, as with leakage and hard negatives, κ and α are low or "
    "negative although people agree; read raw agreement and AC1 there."
)


@dataclass(frozen=True)
class Pair:
    """Two answers to one item."""

    document: str
    seats: Hashable
    first: Answer
    second: Answer


def raw_agreement(counts: np.ndarray) -> np.ndarray:
    """The share of pairs with one answer."""
    table = counts.sum(axis=-3)
    return _over(np.trace(table, axis1=-2, axis2=-1), table.sum(axis=(-2, -1)))


def cohen_kappa(counts: np.ndarray) -> np.ndarray:
    """Cohen (1960): chance from each seat's own habits. Undefined pairs of seats are left out."""
    n = counts.sum(axis=(-2, -1))  # [..., P]
    agree = _over(np.trace(counts, axis1=-2, axis2=-1), n)
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    chance = _over((rows * columns).sum(axis=-1), n * n)
    kappa = _over(agree - chance, 1 - chance)
    weight = np.where(np.isnan(kappa), 0, n)
    return _over((weight * np.nan_to_num(kappa)).sum(axis=-1), weight.sum(axis=-1))


def gwet_ac1(counts: np.ndarray) -> np.ndarray:
    """Gwet (2008): chance from how far the answers spread, whoever gave them."""
    shares = _habits(counts)
    chance = (shares * (1 - shares)).sum(axis=-1) / (shares.shape[-1] - 1)
    agree = raw_agreement(counts)
    return _over(agree - chance, 1 - chance)


def krippendorff_alpha(counts: np.ndarray) -> np.ndarray:
    """Krippendorff's α for answers without an order; observed over expected disagreement."""
    table = counts.sum(axis=-3)
    values = 2 * table.sum(axis=(-2, -1))  # two answers a pair
    habits = table.sum(axis=-1) + table.sum(axis=-2)  # [..., C]
    disagree = 1 - raw_agreement(counts)
    expected = 1 - _over((habits * (habits - 1)).sum(axis=-1), values * (values - 1))
    return 1 - _over(disagree, expected)


STATISTICS: dict[str, Statistic] = {
    "raw agreement": raw_agreement,
    "Cohen's κ": cohen_kappa,
    "Gwet's AC1": gwet_ac1,
    "Krippendorff's α": krippendorff_alpha,
}


def agreement(pairs: Iterable[Pair], boot: Bootstrap) -> dict[str, Measure | None]:
    """Every statistic with its interval over documents; None where it is undefined.

    κ and α are undefined when every answer is the same: there is no chance to correct for.
    """
    tables = _tables(pairs)
    if not tables:
        return dict.fromkeys(STATISTICS)
    return {name: _measure(tables, statistic, boot) for name, statistic in STATISTICS.items()}


def _tables(pairs: Iterable[Pair]) -> dict[str, np.ndarray]:
    """By document, the counts [P, C, C]."""
    found = list(pairs)
    seats = {key: n for n, key in enumerate(dict.fromkeys(pair.seats for pair in found))}
    tables: dict[str, np.ndarray] = {}
    for pair in found:
        table = tables.setdefault(pair.document, np.zeros((len(seats), C, C)))
        place = ANSWERS.index(pair.first), ANSWERS.index(pair.second)
        table[seats[pair.seats]][place] += 1
    return tables


def _measure(
    tables: Mapping[str, np.ndarray], statistic: Statistic, boot: Bootstrap
) -> Measure | None:
    shape = next(iter(tables.values())).shape
    n = len(tables)
    cells = [
        {name: float(table.flat[cell]) for name, table in tables.items()}
        for cell in range(int(np.prod(shape)))
    ]

    def of_means(*means: np.ndarray) -> np.ndarray:
        # Means over documents times their number: α knows how many pairs it has seen.
        counts = np.stack([np.asarray(mean, dtype=float) for mean in means], axis=-1) * n
        return statistic(counts.reshape(*counts.shape[:-1], *shape))

    return boot.statistic(cells, of_means)


def _habits(counts: np.ndarray) -> np.ndarray:
    """How often each answer was given, as a share of all answers."""
    table = counts.sum(axis=-3)
    both = table.sum(axis=-1) + table.sum(axis=-2)
    return _over(both, both.sum(axis=-1, keepdims=True))


def _over(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, not a number where there is nothing to divide by."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    empty = np.isclose(b, 0, atol=1e-12)
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=~empty)


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The middle and the quarters around it."""
    if not values:
        return None
    low, middle, high = (round(float(q), 3) for q in np.quantile(values, [0.25, 0.5, 0.75]))
    return low, middle, high
