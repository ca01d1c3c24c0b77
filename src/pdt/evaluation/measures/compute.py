"""From raw lines to named measures, each with its interval. `pdt verify` calls the same function.

A measure that cannot be had (no self-only checkpoint, nothing coined) is not there.

Paper: §7.1, §7.2, Table 3.
"""

from collections.abc import Callable

from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure
from pdt.evaluation.measures.channel import channel_measures
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.measures.execution import execution_measures
from pdt.evaluation.measures.harder import (
    dealt_measures,
    node_measures,
    opening_measures,
    persistence_measures,
    range_measures,
    uncoined_measures,
)
from pdt.evaluation.measures.notes import agreement_measures, bit_measures, delta_measures
from pdt.evaluation.measures.references import dependency_measures, reference_measures
from pdt.evaluation.measures.roles import role_measures
from pdt.evaluation.measures.screens import screen_measures
from pdt.evaluation.measures.support import support_measures
from pdt.evaluation.measures.writing import writing_measures
from pdt.evaluation.protocol.settings import EvaluationSettings

MEASURES: tuple[Callable[[Evidence], Measured], ...] = (
    writing_measures,
    support_measures,
    delta_measures,
    bit_measures,
    agreement_measures,
    dependency_measures,
    reference_measures,
    channel_measures,
    dealt_measures,
    uncoined_measures,
    node_measures,
    persistence_measures,
    opening_measures,
    range_measures,
    role_measures,
    screen_measures,
    execution_measures,
)
"""A new measure is a function of the stored lines, and a line here."""


def compute_measures(
    raw: Raw, settings: EvaluationSettings, resampler: Bootstrap | None = None
) -> dict[str, Measure]:
    """Every measure of the protocol that these lines allow."""
    evidence = Evidence(raw, settings, resampler)
    return {
        name: measure
        for measured in MEASURES
        for name, measure in measured(evidence).items()
        if measure is not None
    }
