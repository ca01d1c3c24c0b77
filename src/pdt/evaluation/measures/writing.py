"""Measures of free generation: ownership, outlines and prose, and the plan contrasts of Table 3.

Paper: §7.1, §7.2, Table 3.
"""

from collections.abc import Callable, Sequence

from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures import ownership
from pdt.evaluation.measures.bootstrap import Values
from pdt.evaluation.measures.completion import outline_completion
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.measures.longform import is_longform, short_sentence_share
from pdt.evaluation.protocol.conditions import SWAP
from pdt.evaluation.protocol.settings import EvaluationSettings


def writing_measures(evidence: Evidence) -> Measured:
    """Ownership, completion and prose of every condition, and the plan contrasts of Table 3."""
    raw, settings, documents = evidence.raw, evidence.settings, evidence.documents
    judged, boot = evidence.judged.get(settings.screen, {}), evidence.boot
    rates: dict[str, dict[str, float]] = {}

    def note(name: str, record_id: str, value: float | None) -> None:
        if value is not None:
            rates.setdefault(name, {})[record_id] = value

    for written in raw.written:
        name, document = written.record_id, documents[written.record_id]
        found = judged.get((written.condition, name))
        if found is not None:
            for measure, value in _ownership(document, found, written).items():
                note(f"{written.condition}.{measure}", name, value)
            _note_addresses(note, document, found, written)
        note(f"{written.condition}.longform", name, _longform(written, settings))
        texts = [lane.text for lane in written.lanes]
        short = sum(map(short_sentence_share, texts)) / len(texts)
        note(f"{written.condition}.short_sentences", name, short)
        tokens = [lane.prose_tokens for lane in written.lanes]
        note(f"{written.condition}.lane_tokens", name, sum(tokens) / len(tokens))
    base = settings.plan

    def of(name: str) -> Values:
        return rates.get(name, {})

    measures = {
        name: boot.mean(values) for name, values in rates.items() if not name.startswith("_")
    }
    recall = of(f"{base}.owner_recall")
    # Table 3 asks these of learned plans; of the teacher's they have names that no gate reads.
    asked = "" if base == "learned" else f"{base}_"
    if base == "learned":
        measures["planner.retained"] = boot.ratio(recall, of("oracle.owner_recall"))
    measures[f"{asked}planner.zero_drop"] = boot.difference(recall, of("zero.owner_recall"))
    measures[f"{asked}swap.retained"] = boot.ratio(
        of("swap.moved_recall"), of(f"_{base}.at_swapped")
    )
    measures[f"{asked}swap.moved_minus_unmoved"] = boot.difference(
        of("swap.moved_recall"), of("swap.unmoved_recall")
    )
    for other in ("owner_recall", "reference_recall", "duplication", "longform", "leakage"):
        measures[f"sibling.{other}"] = boot.difference(
            of(f"{base}.{other}"), of(f"self_only.{other}")
        )
    return measures


def _ownership(
    document: HeldOutDocument, judged: LaneFacts, written: Written
) -> dict[str, float | None]:
    lanes = written.lane_of_plan
    return {
        "owner_recall": ownership.owner_recall(document, judged, lanes),
        "leakage": ownership.leakage(document, judged, lanes),
        "completion": outline_completion(document, judged, lanes),
        "reference_recall": ownership.reference_recall(document, judged, lanes),
        "hard_negatives": ownership.hard_negative_rate(judged),
        "altered": ownership.altered_rate(document, judged, lanes),
        "duplication": ownership.duplication(document, judged),
    }


def _note_addresses(
    note: Callable[[str, str, float | None], None],
    document: HeldOutDocument,
    judged: LaneFacts,
    written: Written,
) -> None:
    """Recall of the facts whose plans stand on D1 and D2: where they went, and where they were."""
    before, after, name = written.unmoved_lane_of_plan, written.lane_of_plan, written.record_id

    def recall(lane_of_plan: Sequence[int]) -> float | None:
        def swapped(fact: HeldOutFact) -> bool:
            lane = before[fact.owner_lane]
            return SWAP.lane_after(lane) != lane

        return ownership.owner_recall(document, judged, lane_of_plan, only=swapped)

    if written.condition == SWAP.name:
        note("swap.moved_recall", name, recall(after))
        note("swap.unmoved_recall", name, recall(before))
    else:
        note(f"_{written.condition}.at_swapped", name, recall(before))


def _longform(written: Written, settings: EvaluationSettings) -> float:
    valid = [is_longform(lane.text, lane.prose_tokens, settings.longform) for lane in written.lanes]
    return sum(valid) / len(valid)
