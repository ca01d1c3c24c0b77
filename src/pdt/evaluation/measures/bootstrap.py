"""Intervals over documents: the percentile bootstrap, paired where conditions share documents.

A document is drawn with everything measured on it, so facts of one document never count as
independent, and a difference or a ratio of conditions keeps its pairs.

Paper: §7.1 (all confidence intervals are over documents), Table 3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from pdt.contract import Contract

Values = Mapping[str, float]
"""One number per document, by record id; a document without the thing measured is not there."""
Means = Callable[..., np.ndarray]
"""From the means of the columns to the statistic, elementwise over resamples."""

DIGITS = 9


class Measure(Contract):
    """An estimate with its interval."""

    estimate: float
    low: float
    high: float
    documents: Annotated[int, Field(ge=1)]

    def near(self, other: "Measure") -> bool:
        """The same measurement, up to the last digit kept."""
        ours, theirs = (np.array([m.estimate, m.low, m.high]) for m in (self, other))
        same = np.allclose(ours, theirs, rtol=0, atol=2 * 10**-DIGITS)
        return same and self.documents == other.documents


class Bootstrap:
    """A seeded resampler; the same documents give the same resamples to every measure."""

    def __init__(self, *, resamples: int, confidence: float, seed: int) -> None:
        self.resamples, self.confidence, self.seed = resamples, confidence, seed
        self._counts: dict[int, np.ndarray] = {}

    def mean(self, values: Values) -> Measure | None:
        """The mean over documents."""
        return self.statistic([values], lambda mean: mean)

    def difference(self, first: Values, second: Values) -> Measure | None:
        """mean(first) - mean(second) over the documents that have both."""
        return self.statistic([first, second], lambda a, b: a - b)

    def ratio(self, first: Values, second: Values) -> Measure | None:
        """mean(first) / mean(second) over the documents that have both."""
        return self.statistic([first, second], ratio)

    def statistic(self, columns: Sequence[Values], of_means: Means) -> Measure | None:
        """Any function of column means, over the documents that every column has; None if none.

        Where the statistic is not a number it is undefined: None, or a resample left out.
        """
        shared = sorted(set.intersection(*(set(column) for column in columns)))
        if not shared:
            return None
        table = np.array([[column[name] for name in shared] for column in columns])  # [C, n]
        estimate = of_means(*table.mean(axis=1))
        if np.isnan(estimate):
            return None
        return self._measured(float(estimate), of_means(*self._means(table, shared).T), shared)

    def _means(self, table: np.ndarray, shared: Sequence[str]) -> np.ndarray:
        """[R, C]: the columns' means in every resample."""
        return self._draws(len(shared)) @ table.T / len(shared)

    def _measured(self, estimate: float, draws: np.ndarray, shared: Sequence[str]) -> Measure:
        draws = draws[~np.isnan(draws)]
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Measure(
            estimate=_rounded(estimate),
            low=_rounded(low),
            high=_rounded(high),
            documents=len(shared),
        )

    def _draws(self, documents: int) -> np.ndarray:
        """[R, n]: how often each document is drawn."""
        if documents not in self._counts:
            # RandomState's stream is frozen by numpy's policy; Generator's may change.
            stream = np.random.RandomState([self.seed, documents])
            even = np.full(documents, 1 / documents)
            counts = stream.multinomial(documents, even, size=self.resamples)
            self._counts[documents] = counts.astype(np.float64)
        return self._counts[documents]


def _rounded(value: object) -> float:
    """Sums differ in their last bits from machine to machine; what is reported does not."""
    return round(float(value), DIGITS)  # type: ignore[arg-type]


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; nothing over nothing keeps nothing, so it is 0."""
    return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=np.asarray(b) != 0)
