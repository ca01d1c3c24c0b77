"""Which way every effect goes: what a small study can show, where intervals would be too wide."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pdt.contract import Contract, Line
from pdt.evaluation.measures.bootstrap import Measure

DIRECTIONS: dict[str, tuple[str, str | float]] = {
    "a plan says what a lane owns": ("oracle.owner_recall", "oracle.leakage"),
    "the planner's plan is better than none": ("planner.zero_drop", 0.0),
    "a plan that moves takes its facts along": ("swap.moved_minus_unmoved", 0.0),
    "notes count where words depend on them": ("delta.no_dynamic.selectivity", 0.0),
    "notes carry coined words": ("bits.bus.share", "bits.no_dynamic.share"),
    "mutated notes do not": ("bits.bus.share", "bits.mutated.share"),
    "one's own notes do not": ("bits.bus.share", "bits.self_only.share"),
    "lanes agree on names they heard": ("agreement.bus.agree", "agreement.bus.chance"),
    "packed lanes answer sooner than serial ones": ("execution.speedup", 1.0),
}
"""An effect, the measure that should be higher, and what it should be higher than."""


class Direction(Contract):
    """One effect: both sides in every seed, None where a side was not measured."""

    effect: Line
    higher: tuple[float | None, ...]
    lower: tuple[float | None, ...]

    @property
    def outcome(self) -> Literal["yes", "no", "not measured"]:
        """Of all seeds that measured it: some controls have the first seed alone."""
        pairs = zip(self.higher, self.lower, strict=True)
        measured = [(high, low) for high, low in pairs if high is not None and low is not None]
        if not measured:
            return "not measured"
        return "yes" if all(high > low for high, low in measured) else "no"

    @property
    def right(self) -> bool:
        return self.outcome == "yes"


def directions_of(seeds: Sequence[Mapping[str, Measure]]) -> tuple[Direction, ...]:
    """Every direction in the measures of a study, seed by seed."""

    def values(side: str | float) -> tuple[float | None, ...]:
        if isinstance(side, float):
            return tuple(side for _ in seeds)
        found = (measures.get(side) for measures in seeds)
        return tuple(None if measure is None else measure.estimate for measure in found)

    return tuple(
        Direction(effect=effect, higher=values(higher), lower=values(lower))
        for effect, (higher, lower) in DIRECTIONS.items()
    )
