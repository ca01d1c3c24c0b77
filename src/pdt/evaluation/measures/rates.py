"""The rates of every text, document by document: what means, contrasts and subsets are made of.

Paper: §7.1, §7.2.
"""

from collections.abc import Callable, Mapping, Sequence

from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures import ownership, prose
from pdt.evaluation.measures.completion import outline_completion
from pdt.evaluation.measures.longform import is_longform, short_sentence_share
from pdt.evaluation.protocol.conditions import SWAP
from pdt.evaluation.protocol.settings import EvaluationSettings

Rates = dict[str, dict[str, float]]
"""By measure, `condition.rate`, then by record id. Names with a leading _ are shown nowhere."""


def rates_of(
    raw: Raw, judged: Mapping[tuple[str, str], LaneFacts], settings: EvaluationSettings
) -> Rates:
    """Ownership, completion and prose of every document under every condition."""
    answered = raw.answered()
    rates: Rates = {}

    def note(name: str, record_id: str, value: float | None) -> None:
        if value is not None:
            rates.setdefault(name, {})[record_id] = value

    for written in raw.written:
        name, document = written.record_id, answered(written)
        found = judged.get((written.condition, name))
        if found is not None:
            for measure, value in _ownership(document, found, written).items():
                note(f"{written.condition}.{measure}", name, value)
            _note_addresses(note, document, found, written)
        for measure, value in _prose(written, settings).items():
            note(f"{written.condition}.{measure}", name, value)
    return rates


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
        "wrong_doer": ownership.wrong_doer_rate(document, judged, lanes),
        "supported": ownership.supported_rate(judged),
        "duplication": ownership.duplication(document, judged),
    }


def _prose(written: Written, settings: EvaluationSettings) -> dict[str, float | None]:
    texts = [lane.text for lane in written.lanes]
    tokens = [lane.prose_tokens for lane in written.lanes]
    return {
        "longform": _longform(written, settings),
        "short_sentences": sum(map(short_sentence_share, texts)) / len(texts),
        "lane_tokens": sum(tokens) / len(tokens),
        "repeated": prose.repeated_sentences(texts),
        "distinct": prose.distinct_trigrams(texts),
        "sentence_words": prose.sentence_words(texts),
        "shared_sentences": prose.shared_sentences(texts),
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
