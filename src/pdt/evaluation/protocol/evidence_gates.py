"""The evidence gates: one measure, one threshold, one verdict each. The thresholds are data.

Paper: §7.1, Table 3.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from importlib import resources
from typing import Literal

import yaml
from pydantic import model_validator

from pdt.contract import Contract, Line
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.measures.bootstrap import Measure

FILE = "evidence_gates.yaml"
FEWEST = 8
"""Documents under which an interval over documents has no end worth judging."""
FLOOR = 0.5
"""What a floor's measure must reach: chance among three lanes is a third."""


class Need(StrEnum):
    """What a corpus must have for a gate to be asked of it."""

    COINED = "coined"
    DEPENDENCIES = "dependencies"
    REFERENCES = "references"


def had_by(documents: Sequence[HeldOutDocument]) -> frozenset[Need]:
    """What these documents have."""
    found = {
        Need.COINED: any(d.choices or d.unread_choices for d in documents),
        Need.DEPENDENCIES: any(d.dependencies for d in documents),
        Need.REFERENCES: any(d.references for d in documents),
    }
    return frozenset(need for need, there in found.items() if there)


class Verdict(StrEnum):
    MET = "met"
    UNMET = "unmet"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


class EvidenceGate(Contract):
    """A threshold on an estimate or on one end of its interval."""

    name: Line
    measure: Line
    judged_on: Literal["estimate", "low", "high"]
    source: Line
    """Table 3; `project` where the paper asks for a measurement without a threshold; H1 to H8."""
    floor: Line | None = None
    """A measure whose estimate must reach `FLOOR` besides."""
    needs: Need | None = None
    """Without it in the corpus the gate is not asked."""
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

    def verdict(self, measure: Measure | None, floor: Measure | None = None) -> Verdict:
        """What is not measured, or a bound on a handful of documents, is not met, and says so."""
        if self.floor is not None and floor is None:
            return Verdict.NOT_MEASURED
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
        above_floor = floor is None or floor.estimate >= FLOOR
        return Verdict.MET if met and above_floor else Verdict.UNMET


class Question(Contract):
    """A row of Table 3, or one of the harder ones."""

    question: Line
    gates: tuple[EvidenceGate, ...]


class MeasuredGate(Contract):
    """A gate with what was measured, and the verdict."""

    question: Line
    gate: EvidenceGate
    measure: Measure | None
    floor: Measure | None = None
    """Of the gate's floor, where it has one."""
    verdict: Verdict


def registered_questions() -> tuple[Question, ...]:
    """Table 3 and the harder questions, from their data file."""
    text = (resources.files("pdt.evaluation.protocol") / FILE).read_text(encoding="utf-8")
    return tuple(Question.model_validate(row) for row in yaml.safe_load(text))


def judge_gates(
    measures: Mapping[str, Measure], has: Collection[Need] = frozenset(Need)
) -> tuple[MeasuredGate, ...]:
    """Every gate against the measures of one evaluation of documents that have these things.

    Paper: Table 3.
    """

    def judged(question: str, gate: EvidenceGate) -> MeasuredGate:
        asked = gate.needs is None or gate.needs in has
        measure = measures.get(gate.measure)
        floor = None if gate.floor is None else measures.get(gate.floor)
        return MeasuredGate(
            question=question,
            gate=gate,
            measure=measure if asked else None,
            floor=floor,
            verdict=gate.verdict(measure, floor) if asked else Verdict.NOT_APPLICABLE,
        )

    return tuple(judged(row.question, gate) for row in registered_questions() for gate in row.gates)
