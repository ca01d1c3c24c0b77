"""From raw lines to named measures, each with its interval. `pdt verify` calls the same function.

A measure that cannot be had (no self-only checkpoint, nothing coined) is not there.

Paper: §7.1, §7.2, Table 3.
"""

from collections.abc import Callable, Mapping

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.execution import ONE, PACKED, SERIAL, Execution
from pdt.evaluation.lines.judgments import Judged
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures import ownership
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure, Values
from pdt.evaluation.measures.completion import outline_completion
from pdt.evaluation.measures.longform import is_longform, short_sentence_share
from pdt.evaluation.measures.notes import agreement_measures, bit_measures, delta_measures
from pdt.evaluation.protocol.conditions import SWAP
from pdt.evaluation.protocol.settings import EvaluationSettings

Measures = dict[str, Measure]


def compute_measures(raw: Raw, settings: EvaluationSettings) -> Measures:
    """Every measure of the protocol that these lines allow."""
    boot = Bootstrap(
        resamples=settings.resamples, confidence=settings.confidence, seed=settings.seed
    )
    documents = {document.record_id: document for document in raw.documents}
    found: dict[str, Measure | None] = {}
    found |= _written_measures(raw, settings, documents, boot)
    found |= delta_measures(raw, documents, boot)
    found |= bit_measures(raw, documents, boot)
    found |= agreement_measures(raw, settings, documents, boot)
    found |= _screen_measures(raw, boot)
    if raw.execution is not None:
        found |= _execution_measures(raw.execution, boot)
    return {name: measure for name, measure in found.items() if measure is not None}


def _written_measures(
    raw: Raw,
    settings: EvaluationSettings,
    documents: Mapping[str, HeldOutDocument],
    boot: Bootstrap,
) -> dict[str, Measure | None]:
    """Ownership, completion and prose of every condition, and the plan contrasts of Table 3."""
    judged = {
        (row.condition, row.record_id): row.judged
        for row in raw.judgments
        if row.screen == settings.screen
    }
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
    document: HeldOutDocument, judged: Judged, written: Written
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
    judged: Judged,
    written: Written,
) -> None:
    """Recall of the facts whose plans stand on D1 and D2: where they went, and where they were."""
    before = written.unmoved_lane_of_plan
    plans = {plan for plan, lane in enumerate(before) if SWAP.lane_after(lane) != lane}
    name = written.record_id
    if written.condition == "swap":
        moved = ownership.owner_recall(document, judged, written.lane_of_plan, plans)
        note("swap.moved_recall", name, moved)
        note("swap.unmoved_recall", name, ownership.owner_recall(document, judged, before, plans))
    else:
        here = ownership.owner_recall(document, judged, before, plans)
        note(f"_{written.condition}.at_swapped", name, here)


def _longform(written: Written, settings: EvaluationSettings) -> float:
    valid = [is_longform(lane.text, lane.prose_tokens, settings.longform) for lane in written.lanes]
    return sum(valid) / len(valid)


def _screen_measures(raw: Raw, boot: Bootstrap) -> dict[str, Measure | None]:
    """How far two screens agree on the lanes and facts that both have judged."""
    exact, nli = (
        {(r.condition, r.record_id): r.judged for r in raw.judgments if r.screen == name}
        for name in ("exact", "nli")
    )
    shared = exact.keys() & nli.keys()
    agree: dict[str, list[float]] = {}
    hits: dict[str, list[float]] = {}
    false_alarms: dict[str, list[float]] = {}
    for key in sorted(shared):
        pairs = [
            (a, b)
            for ours, theirs in zip(exact[key].mentioned_KF, nli[key].mentioned_KF, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        ]
        agree.setdefault(key[1], []).extend(float(a == b) for a, b in pairs)
        hits.setdefault(key[1], []).extend(float(b) for a, b in pairs if a)
        false_alarms.setdefault(key[1], []).extend(float(b) for a, b in pairs if not a)
    return {
        "screens.agreement": boot.mean(_means(agree)) if shared else None,
        "screens.nli_finds": boot.mean(_means(hits)) if shared else None,
        "screens.nli_false_alarms": boot.mean(_means(false_alarms)) if shared else None,
    }


def _execution_measures(execution: Execution, boot: Bootstrap) -> dict[str, Measure | None]:
    """Depth and time of the packed frontier against its serial lanes, over documents."""
    measures: dict[str, Measure | None] = {}
    rounds, seconds = (
        {
            side: {run.record_id: float(getattr(run, name)) for run in execution.of_side(side)}
            for side in (PACKED, SERIAL, ONE)
        }
        for name in ("rounds", "seconds")
    )
    speed = {
        side: {run.record_id: run.tokens_per_second for run in execution.of_side(side)}
        for side in (PACKED, SERIAL, ONE)
    }
    for side in (PACKED, SERIAL, ONE):
        key = side.replace(" ", "_")
        measures[f"execution.{key}.rounds"] = boot.mean(rounds[side])
        measures[f"execution.{key}.seconds"] = boot.mean(seconds[side])
        measures[f"execution.{key}.tokens_per_second"] = boot.mean(speed[side])
    for part in ("prefill", "decode", "barrier"):
        measures[f"execution.packed.{part}_seconds"] = boot.mean(
            {r.record_id: getattr(r, f"{part}_seconds") for r in execution.of_side(PACKED)}
        )
    measures["execution.rounds_ratio"] = boot.ratio(rounds[PACKED], rounds[SERIAL])
    measures["execution.speedup"] = boot.ratio(seconds[SERIAL], seconds[PACKED])
    return measures


def _means(values: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: sum(v) / len(v) for name, v in values.items() if v}
