"""adjudicated.json: every measure that rests on judgments, screened and adjudicated.

Paper: §7.2, Table 3.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

from pdt.audit.answers import Answer
from pdt.audit.decisions import Decision
from pdt.audit.directory import StoredAudit
from pdt.audit.queue import Claim
from pdt.audit.tables import AUDIT, drawn_raw
from pdt.contract import Contract, Id, Index, Line, Sha256
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.evidence_gates import MeasuredGate, had_by, judge_gates
from pdt.evaluation.report.results import Results


class Rests(StrEnum):
    """What a number rests on."""

    ADJUDICATED = "adjudicated"
    SCREENED = "screened"
    """On judgments of a screen alone: nobody audited it."""
    MEASURED = "measured"
    """On no judgment at all."""


class ComparedMeasure(Contract):
    """One measure that rests on judgments."""

    name: Line
    screened: Measure | None
    """Over all documents of the verdict."""
    sample: Measure | None
    """By the screen, over the same items that people judged."""
    adjudicated: Measure | None


class ComparedGate(Contract):
    """A row of Table 3, by the screen and finally."""

    screened: MeasuredGate
    final: MeasuredGate
    rests: Rests


class Difference(Contract):
    """A line of differences.jsonl: where people and the screen do not say the same."""

    condition: Id
    record_id: Id
    lane: Index
    fact_id: Id
    claim: Claim
    words: Line
    screen: bool
    """The screen finds the claim in the lane."""
    people: Answer


class Adjudicated(Contract):
    """adjudicated.json."""

    schema_version: Literal["pdt.adjudicated/1"] = "pdt.adjudicated/1"
    rates: Literal["adjudicated"] = "adjudicated"
    """What the final rates rest on; those of a verdict are screened."""
    verdict: Sha256
    """Of its manifest."""
    audit: Sha256
    """Of its manifest."""
    screen: Id
    measures: tuple[ComparedMeasure, ...]
    gates: tuple[ComparedGate, ...]
    against_people: dict[str, Measure]
    """How far each screen agrees with people, finds what they find, and sees what they do not."""


def compare(results: Results, raw: Raw, audit: StoredAudit, *, digest: str) -> Adjudicated:
    """The final rates; a condition that was not audited keeps the screen's, and says so."""
    settings = results.settings
    sample = drawn_raw(audit.queue, raw)
    sampled = settings.model_copy(update={"documents": len(sample.documents)})
    by_screen = compute_measures(sample, sampled)
    sample.judgments += audit.judgments
    people = sampled.model_copy(update={"screen": AUDIT})
    by_people = compute_measures(sample, people)
    without = compute_measures(_unjudged(raw), settings)
    judged = [name for name in results.measures if name not in without and not _beside(name)]
    final = dict(results.measures)
    for name in judged:
        if name in by_people:
            final[name] = by_people[name]
    return Adjudicated(
        verdict=audit.closed.plan.verdict,
        audit=digest,
        screen=settings.screen,
        measures=tuple(
            ComparedMeasure(
                name=name,
                screened=results.measures.get(name),
                sample=by_screen.get(name),
                adjudicated=by_people.get(name),
            )
            for name in judged
        ),
        gates=tuple(
            ComparedGate(screened=before, final=after, rests=_rests(after, judged, by_people))
            for before, after in zip(
                results.gates, judge_gates(final, had_by(raw.documents)), strict=True
            )
        ),
        against_people={name: m for name, m in sorted(by_people.items()) if _beside(name)},
    )


def differences(
    results: Results, raw: Raw, audit: StoredAudit, decisions: dict[int, Decision]
) -> Iterator[Difference]:
    """Every item on which people and the verdict's screen differ."""
    sample = drawn_raw(audit.queue, raw)
    answered = sample.answered()
    said = {
        (row.condition, row.record_id): (row.judged, [fact.id for fact in answered(row).facts])
        for row in sample.judgments
        if row.screen == results.settings.screen
    }
    for item in audit.queue.items:
        text = audit.queue.texts[item.text]
        judged, facts = said[text.condition, text.record_id]
        table = judged.mentioned_KF if item.claim is Claim.STATEMENT else judged.hard_negative_KF
        found = bool(table[text.lane][facts.index(item.fact_id)])
        people = decisions[item.number].answer
        if found != (people is Answer.YES):
            yield Difference(
                condition=text.condition,
                record_id=text.record_id,
                lane=text.lane,
                fact_id=item.fact_id,
                claim=item.claim,
                words=item.words,
                screen=found,
                people=people,
            )


def _unjudged(raw: Raw) -> Raw:
    return Raw(**{**vars(raw), "judgments": []})


def _beside(name: str) -> bool:
    """Is it about a screen, not about the model?"""
    return name.startswith("screens.")


def _rests(gate: MeasuredGate, judged: list[str], by_people: dict[str, Measure]) -> Rests:
    if gate.gate.measure not in judged:
        return Rests.MEASURED
    return Rests.ADJUDICATED if gate.gate.measure in by_people else Rests.SCREENED
