"""Ordinary references, and what becomes of all dependencies of a document.

A reference is a fact of the source that another lane owns: the receiver could read it there, so
what counts is that it speaks of it, when, and whether the notes tell it more.

Paper: §4.2, §7.3, Table 3 (delayed-reference timing); the gates are ours (H7, H8).
"""

from bisect import bisect_right
from typing import NamedTuple

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.written import Written, WrittenLane
from pdt.evaluation.measures import bits
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.measures.longform import one_spaced, sentence_starts
from pdt.evaluation.protocol.conditions import BUS, NO_DYNAMIC, ORACLE


def reference_measures(evidence: Evidence) -> Measured:
    """Recall and timing of references with the plan of each document, and Δ on their tokens."""
    recall: dict[str, float] = {}
    timely: dict[str, float] = {}
    for name, document in evidence.documents.items():
        found = _base(evidence, document)
        if found is None or not document.references:
            continue
        written, judged = found
        asked = references_of(document)
        both = [r for r in asked if _both(r, written, judged)]
        heard = [_mentions(r, written, judged) for r in asked]
        if not heard:
            continue
        recall[name] = sum(heard) / len(heard)
        if both and judged.place_KF is not None:
            ready = [_in_time(r, written, judged, evidence.settings.block_tokens) for r in both]
            timely[name] = sum(ready) / len(ready)
    boot = evidence.boot
    rows = {(row.condition, row.record_id): row for row in evidence.raw.likelihoods}
    told, untold = (
        {
            name: value
            for name, document in evidence.documents.items()
            if (value := _nll(document, rows.get((condition.name, name)))) is not None
        }
        for condition in (BUS, NO_DYNAMIC)
    )
    return {
        "references.recall": boot.mean(recall),
        "references.in_time": boot.mean(timely),
        "references.delta": boot.difference(untold, told),
    }


def dependency_measures(evidence: Evidence) -> Measured:
    """Of all dependencies, the share that both lanes write and agree on; nothing is left out.

    A coined word counts when the receiver writes the word that was drawn for its owner; a
    reference when the owner states the fact and the receiver speaks of it. What no measure can
    read counts as not written.
    """
    coined = {row.record_id: row for row in evidence.raw.coined if row.condition == BUS.name}
    settings = evidence.settings
    shares: dict[str, float] = {}
    for name, document in evidence.documents.items():
        found, spoken = _base(evidence, document), coined.get(name)
        if not document.dependencies or (document.references and found is None):
            continue
        if document.choices and spoken is None:
            continue
        agreed = 0
        if spoken is not None:
            agreed += sum(
                bits.agreement(
                    choice,
                    spoken,
                    block_tokens=settings.block_tokens,
                    window_blocks=settings.window_blocks,
                    delay_blocks=settings.note_delay_blocks,
                ).agree
                for choice in document.choices
            )
        references = references_of(document)
        if found is not None:
            agreed += sum(_both(reference, *found) for reference in references)
        asked = document.dependencies - len(document.references) + len(references)
        if asked:
            shares[name] = agreed / asked
    return {"agreement.all": evidence.boot.mean(shares)}


class Asked(NamedTuple):
    """A reference with the number of its fact."""

    fact: int
    owner_lane: int
    receiver_lane: int


def references_of(document: HeldOutDocument) -> list[Asked]:
    """The references whose facts the document has; an audit may have drawn some of them."""
    number = {fact.id: n for n, fact in enumerate(document.facts)}
    return [
        Asked(number[reference.fact_id], reference.owner_lane, reference.receiver_lane)
        for reference in document.references
        if reference.fact_id in number
    ]


def _base(evidence: Evidence, document: HeldOutDocument) -> tuple[Written, LaneFacts] | None:
    """The plain run: the evaluation's plan, or the teacher's where nothing tells the division."""
    key = (evidence.settings.plan if document.told else ORACLE.name, document.record_id)
    written, judged = evidence.texts.get(key), evidence.screened.get(key)
    return None if written is None or judged is None else (written, judged)


def _mentions(reference: Asked, written: Written, judged: LaneFacts) -> bool:
    lane = written.lane_of_plan[reference.receiver_lane]
    return bool(judged.mentioned_KF[lane][reference.fact])


def _both(reference: Asked, written: Written, judged: LaneFacts) -> bool:
    owner = written.lane_of_plan[reference.owner_lane]
    stated = bool(judged.stated_KF[owner][reference.fact])
    return stated and _mentions(reference, written, judged)


def _in_time(reference: Asked, written: Written, judged: LaneFacts, block_tokens: int) -> bool:
    """The owner's sentence ends in a whole block before the one where the receiver's begins."""
    assert judged.place_KF is not None
    owner, receiver = (
        written.lane_of_plan[lane] for lane in (reference.owner_lane, reference.receiver_lane)
    )
    said, heard = written.lanes[owner], written.lanes[receiver]
    starts = [*sentence_starts(said.text), len(one_spaced(said.text)) + 1]
    end = starts[bisect_right(starts, judged.place_KF[owner][reference.fact])] - 1
    sent = _block_of(said, end)
    return sent < len(said.block_ends) and sent < _block_of(
        heard, judged.place_KF[receiver][reference.fact]
    )


def _block_of(lane: WrittenLane, place: int) -> int:
    """The block that writes this character of the one-spaced text."""
    return sum(len(one_spaced(lane.text[:end])) <= place for end in lane.block_ends)


def _nll(document: HeldOutDocument, row: Likelihoods | None) -> float | None:
    """The mean NLL of the tokens that refer to a fact."""
    if row is None:
        return None
    values = [row.nll[r.receiver_lane][t] for r in document.references for t in r.receiver_tokens]
    return sum(values) / len(values) if values else None
