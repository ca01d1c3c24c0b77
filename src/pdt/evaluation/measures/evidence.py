"""The stored lines as every measure reads them.

Paper: §7.1.
"""

from dataclasses import dataclass
from functools import cached_property

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure
from pdt.evaluation.protocol.settings import EvaluationSettings

Measured = dict[str, Measure | None]
"""Measures by name; None where the lines hold nothing to measure."""


@dataclass(frozen=True)
class Evidence:
    """Raw lines with the settings that made them, indexed once for all measures."""

    raw: Raw
    settings: EvaluationSettings

    @cached_property
    def boot(self) -> Bootstrap:
        settings = self.settings
        return Bootstrap(
            resamples=settings.resamples, confidence=settings.confidence, seed=settings.seed
        )

    @cached_property
    def documents(self) -> dict[str, HeldOutDocument]:
        """By record id."""
        return {document.record_id: document for document in self.raw.documents}

    @cached_property
    def judged(self) -> dict[str, dict[tuple[str, str], LaneFacts]]:
        """By screen, then by condition and record id."""
        found: dict[str, dict[tuple[str, str], LaneFacts]] = {}
        for row in self.raw.judgments:
            found.setdefault(row.screen, {})[row.condition, row.record_id] = row.judged
        return found
