"""Decisions as lines of the same kind as a screen writes: who says which claim, by lane and fact.

A person is asked whether a claim is stated, so a statement and a mention are one thing, as with the
NLI screen. `contradicted` is the wrong value that the exact screen calls altered. `cannot tell`
counts against the model: not stated where a lane should tell it, stated where it may not.

Paper: §7.2.
"""

from collections.abc import Mapping

from pdt.audit.answers import Answer
from pdt.audit.decisions import Decision
from pdt.audit.plan import DrawnDocument, drawn_facts
from pdt.audit.queue import AuditText, Claim, Queue
from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact
from pdt.evaluation.lines.judgments import Judgment, LaneFacts
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written

AUDIT = "audit"
"""In the place of a screen's name."""


def drawn_raw(queue: Queue, raw: Raw) -> Raw:
    """A verdict's lines as if it had been run on the sample alone: documents, texts, judgments."""
    drawn = {row.record_id: row for row in queue.plan.documents}
    documents, answered = {one.record_id: one for one in raw.documents}, raw.answered()

    def kept(row: Written | Judgment) -> bool:
        return row.record_id in drawn and row.condition in queue.plan.conditions

    return Raw(
        documents=[_of_facts(documents[name], row) for name, row in drawn.items()],
        altered=[
            row.model_copy(
                update={"document": _of_facts(row.document, drawn[row.document.record_id])}
            )
            for row in raw.altered
            if row.document.record_id in drawn and row.condition in queue.plan.conditions
        ],
        written=[row for row in raw.written if kept(row)],
        judgments=[
            row.model_copy(
                update={
                    "judged": _columns(row.judged, drawn_facts(answered(row), drawn[row.record_id]))
                }
            )
            for row in raw.judgments
            if kept(row)
        ],
    )


def adjudicated_lines(
    queue: Queue, decisions: Mapping[int, Decision], sample: Raw
) -> list[Judgment]:
    """One line a condition and document of the sample."""
    said: dict[tuple[str, str, int, str, Claim], tuple[Answer, int]] = {}
    for item in queue.items:
        text, decision = queue.texts[item.text], decisions[item.number]
        key = (text.condition, text.record_id, text.lane, item.fact_id, item.claim)
        said[key] = decision.answer, _place(text, decision)
    answered = sample.answered()
    return [
        Judgment(
            screen=AUDIT,
            condition=row.condition,
            record_id=row.record_id,
            judged=_lane_facts(row, answered(row), said),
        )
        for row in sample.written
    ]


def _lane_facts(
    row: Written,
    document: HeldOutDocument,
    said: Mapping[tuple[str, str, int, str, Claim], tuple[Answer, int]],
) -> LaneFacts:
    lanes = range(len(row.lanes))

    def cells(claim: Claim) -> list[list[tuple[Answer, int]]]:
        return [
            [said[row.condition, row.record_id, lane, fact.id, claim] for lane in lanes]
            for fact in document.facts
        ]

    stated, false = cells(Claim.STATEMENT), cells(Claim.HARD_NEGATIVE)
    against = (Answer.YES, Answer.CANNOT_TELL)
    return LaneFacts.of_facts(
        stated_FK=[[answer is Answer.YES for answer, _ in fact] for fact in stated],
        mentioned_FK=[
            [
                answer is Answer.YES or (answer in against and not may_mention(row, lane, fact))
                for lane, (answer, _) in enumerate(found)
            ]
            for fact, found in zip(document.facts, stated, strict=True)
        ],
        hard_negative_FK=[[answer in against for answer, _ in fact] for fact in false],
        altered_FK=[[answer is Answer.CONTRADICTED for answer, _ in fact] for fact in stated],
        place_FK=[[place for _, place in fact] for fact in stated],
    )


def _place(text: AuditText, decision: Decision) -> int:
    """Where the sentence begins that people marked as stating the claim; -1 where none does."""
    if decision.answer is not Answer.YES or decision.sentence is None:
        return -1
    return sum(len(sentence) + 1 for sentence in text.sentences[: decision.sentence])


def may_mention(row: Written, lane: int, fact: HeldOutFact) -> bool:
    """Does the plan that stands on this lane own the fact, or allow a mention of it?"""
    plan = row.lane_of_plan.index(lane)
    return plan == fact.owner_lane or plan in fact.permitted_lanes


def _of_facts(document: HeldOutDocument, drawn: DrawnDocument) -> HeldOutDocument:
    facts = tuple(document.facts[place] for place in drawn_facts(document, drawn))
    return document.model_copy(update={"facts": facts})


def _columns(judged: LaneFacts, places: list[int]) -> LaneFacts:
    """The table of some facts."""
    return LaneFacts.model_validate(
        {
            name: None if table is None else [[lane[place] for place in places] for lane in table]
            for name, table in judged
        }
    )
