"""The evidence gates: one measure, one threshold, one verdict each. The thresholds are data.

Paper: §7.1, Table 3.
"""

from collections.abc import Mapping
from enum import StrEnum
from importlib import resources
from typing import Literal

import yaml
from pydantic import model_validator

from pdt.contract import Contract, Line
from pdt.evaluation.measures.bootstrap import Measure

FILE = "evidence_gates.yaml"
FEWEST = 8
"""Documents under which an interval over documents has no end worth judging."""


class Verdict(StrEnum):
    MET = "met"
    UNMET = "unmet"
    NOT_MEASURED = "not measured"


class EvidenceGate(Contract):
    """A threshold on an estimate or on one end of its interval."""

    name: Line
    measure: Line
    judged_on: Literal["estimate", "low", "high"]
    source: Line
    """Table 3, or `project` where the paper asks for a measurement without a threshold."""
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> "EvidenceGate":
        if sum(value is not None for _, value in self._thresholds()) != 1:
            raise ValueError(f"the gate {self.name!r} needs exactly one threshold")
        return self

    def _thresholds(self) -> list[tuple[str, float | None]]:
        return [
            ("≥", self.at_least),
            ("≤", self.at_most),
            (">", self.above),
            ("<", self.below),
        ]

    @property
    def threshold(self) -> tuple[str, float]:
        """The sign and the number."""
        return next((sign, value) for sign, value in self._thresholds() if value is not None)

    def verdict(self, measure: Measure | None) -> Verdict:
        """What is not measured, or a bound on a handful of documents, is not met, and says so."""
        if measure is None or (self.judged_on != "estimate" and measure.documents < FEWEST):
            return Verdict.NOT_MEASURED
        value: float = getattr(measure, self.judged_on)
        sign, threshold = self.threshold
        met = {
            "≥": value >= threshold,
            "≤": value <= threshold,
            ">": value > threshold,
            "<": value < threshold,
        }[sign]
        return Verdict.MET if met else Verdict.UNMET


class Question(Contract):
    """A row of Table 3."""

    question: Line
    gates: tuple[EvidenceGate, ...]


class MeasuredGate(Contract):
    """A gate with what was measured, and the verdict."""

    question: Line
    gate: EvidenceGate
    measure: Measure | None
    verdict: Verdict


def registered_questions() -> tuple[Question, ...]:
    """Table 3, from its data file."""
    text = (resources.files("pdt.evaluation.protocol") / FILE).read_text(encoding="utf-8")
    return tuple(Question.model_validate(row) for row in yaml.safe_load(text))


def judge_gates(measures: Mapping[str, Measure]) -> tuple[MeasuredGate, ...]:
    """Every gate of Table 3 against the measures of one evaluation. Paper: Table 3."""
    return tuple(
        MeasuredGate(
            question=row.question,
            gate=gate,
            measure=measures.get(gate.measure),
            verdict=gate.verdict(measures.get(gate.measure)),
        )
        for row in registered_questions()
        for gate in row.gates
    )
