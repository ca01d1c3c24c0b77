"""What one factor does: a variant minus the baseline, paired over documents and seeds.

Every run was judged on the same documents. A resample draws documents, the same ones in every run,
and seeds, the same ones in variant and baseline; the effect is the mean over the drawn seeds.

Paper: Appendix A, §7.1.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import PrivateAttr

from pdt.contract import Contract, Id, Line
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import DIGITS, Bootstrap, Measure
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.screen.design import Compared


class Drawn(Measure):
    """A measure with its value in every resample of the documents; NaN where it has none."""

    _draws: np.ndarray = PrivateAttr()

    @property
    def draws(self) -> np.ndarray:
        return self._draws


class PairedBootstrap(Bootstrap):
    """Resamples of one list of documents, whichever of them a measure is on."""

    def __init__(self, documents: Sequence[str], compared: Compared) -> None:
        super().__init__(
            resamples=compared.resamples, confidence=compared.confidence, seed=compared.seed
        )
        self._place = {name: place for place, name in enumerate(sorted(documents))}

    def _means(self, table: np.ndarray, shared: Sequence[str]) -> np.ndarray:
        counts = self._draws(len(self._place))[:, [self._place[name] for name in shared]]
        with np.errstate(invalid="ignore", divide="ignore"):
            means: np.ndarray = counts @ table.T / counts.sum(axis=1, keepdims=True)
        return means

    def _measured(self, estimate: float, draws: np.ndarray, shared: Sequence[str]) -> Measure:
        measure = super()._measured(estimate, draws, shared)
        drawn = Drawn.model_validate(measure.model_dump())
        drawn._draws = np.broadcast_to(draws, (self.resamples,))
        return drawn


class Effect(Contract):
    """A variant minus the baseline in one measure."""

    variant: Id
    measure: Line
    estimate: float
    low: float
    high: float
    """The interval of this comparison alone."""
    low_all: float
    high_all: float
    """Wide enough for all comparisons of the screen at once (Bonferroni)."""
    p: float
    """Two-sided: how rare a resample on the other side of nothing is."""
    p_corrected: float
    by_seed: dict[str, float]
    documents: int

    @property
    def clear(self) -> bool:
        """Does it stand after the correction? Its level is the interval's."""
        return self.low_all > 0 or self.high_all < 0


def drawn_measures(
    raw: Raw, settings: EvaluationSettings, compared: Compared, names: Sequence[str]
) -> dict[str, Drawn]:
    """The named measures of one run, each with its resamples."""
    resampler = PairedBootstrap([document.record_id for document in raw.documents], compared)
    found = compute_measures(raw, settings, resampler)
    return {name: m for name in names if isinstance(m := found.get(name), Drawn)}


def effects_of(
    runs: Mapping[tuple[str, int], Mapping[str, Drawn]],
    *,
    baseline: str,
    variants: Sequence[str],
    measures: Sequence[str],
    compared: Compared,
    comparisons: int,
) -> list[Effect]:
    """Every effect that can be had, measure by measure; corrected for all sealed comparisons."""
    found = []
    for measure in measures:
        of = {key: drawn[measure] for key, drawn in runs.items() if measure in drawn}
        seeds = [seed for name, seed in of if name == baseline]
        effects = []
        for variant in variants:
            both = [seed for seed in seeds if (variant, seed) in of]
            pairs = {seed: (of[variant, seed], of[baseline, seed]) for seed in both}
            effect = _effect(variant, measure, pairs, compared, comparisons)
            effects += [] if effect is None else [effect]
        corrected = correct([e.p for e in effects], comparisons, compared.correction)
        found += [
            effect.model_copy(update={"p_corrected": p})
            for effect, p in zip(effects, corrected, strict=True)
        ]
    return found


def _effect(
    variant: str,
    measure: str,
    pairs: Mapping[int, tuple[Drawn, Drawn]],
    compared: Compared,
    comparisons: int,
) -> Effect | None:
    if not pairs:
        return None
    by_seed = {seed: ours.estimate - theirs.estimate for seed, (ours, theirs) in pairs.items()}
    differences = np.array([ours.draws - theirs.draws for ours, theirs in pairs.values()])  # [S, R]
    count = len(pairs)
    stream = np.random.RandomState([compared.seed, count, 1])
    drawn = stream.multinomial(count, np.full(count, 1 / count), size=compared.resamples)  # [R, S]
    draws = (np.where(drawn.T > 0, differences * drawn.T, 0.0)).sum(axis=0) / count
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return None
    tail = (1 - compared.confidence) / 2
    ends = np.quantile(draws, [tail, 1 - tail, tail / comparisons, 1 - tail / comparisons])
    least = min((draws <= 0).sum(), (draws >= 0).sum())
    p = min(1.0, 2 * (1 + int(least)) / (len(draws) + 1))
    low, high, low_all, high_all = (round(float(end), DIGITS) for end in ends)
    return Effect(
        variant=variant,
        measure=measure,
        estimate=round(sum(by_seed.values()) / count, DIGITS),
        low=low,
        high=high,
        low_all=low_all,
        high_all=high_all,
        p=p,
        p_corrected=p,
        by_seed={str(seed): round(value, DIGITS) for seed, value in by_seed.items()},
        documents=min(m.documents for pair in pairs.values() for m in pair),
    )


def correct(
    values: Sequence[float], comparisons: int, how: Literal["holm", "bonferroni"]
) -> list[float]:
    """p-values for that many comparisons, of which some may be missing: they count as tested."""
    if how == "bonferroni":
        return [min(1.0, p * comparisons) for p in values]
    corrected, so_far = list(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        so_far = max(so_far, min(1.0, values[place] * (comparisons - rank)))
        corrected[place] = so_far
    return corrected
