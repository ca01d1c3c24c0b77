"""The stored lines as every measure reads them.

Paper: §7.1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure, Values
from pdt.evaluation.measures.rates import Rates, rates_of
from pdt.evaluation.protocol.settings import EvaluationSettings

Measured = dict[str, Measure | None]
"""Measures by name; None where the lines hold nothing to measure."""


@dataclass(frozen=True)
class Evidence:
    """Raw lines with the settings that made them, indexed once for all measures."""

    raw: Raw
    settings: EvaluationSettings
    resampler: Bootstrap | None = None
    """Instead of the one that the settings give."""

    @cached_property
    def boot(self) -> Bootstrap:
        if self.resampler is not None:
            return self.resampler
        settings = self.settings
        return Bootstrap(
            resamples=settings.resamples, confidence=settings.confidence, seed=settings.seed
        )

    @cached_property
    def documents(self) -> dict[str, HeldOutDocument]:
        """By record id."""
        return {document.record_id: document for document in self.raw.documents}

    @cached_property
    def screened(self) -> dict[tuple[str, str], LaneFacts]:
        """What the chosen screen found, by condition and record id."""
        return self.judged.get(self.settings.screen, {})

    @cached_property
    def rates(self) -> Rates:
        """Every rate of every document under every condition."""
        return rates_of(self.raw, self.screened, self.settings)

    @cached_property
    def texts(self) -> dict[tuple[str, str], Written]:
        """Free generations, by condition and record id."""
        return {(row.condition, row.record_id): row for row in self.raw.written}

    def of(self, rate: str, only: Callable[[HeldOutDocument], bool] | None = None) -> Values:
        """A rate by document, of all of them or of some; nothing where nothing was measured."""
        found = self.rates.get(rate, {})
        if only is None:
            return found
        return {name: value for name, value in found.items() if only(self.documents[name])}

    @cached_property
    def judged(self) -> dict[str, dict[tuple[str, str], LaneFacts]]:
        """By screen, then by condition and record id."""
        found: dict[str, dict[tuple[str, str], LaneFacts]] = {}
        for row in self.raw.judgments:
            found.setdefault(row.screen, {})[row.condition, row.record_id] = row.judged
        return found
