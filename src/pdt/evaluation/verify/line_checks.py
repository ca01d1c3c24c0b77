"""Every file of a result directory holds exactly its run's lines, each as such a run writes it.

Paper: §7.1, §7.2, §7.3.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from pdt.evaluation.generate.write import block_ends, draw_words
from pdt.evaluation.lines.altered import Altered
from pdt.evaluation.lines.document import HeldOutDocument, draw_transplant
from pdt.evaluation.lines.execution import SIDES
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.raw import (
    ALTERED,
    COINED_WORDS,
    DOCUMENTS,
    EXECUTION,
    GENERATIONS,
    JUDGMENTS,
    LIKELIHOODS,
)
from pdt.evaluation.lines.written import EOS, Written
from pdt.evaluation.protocol.conditions import Condition
from pdt.evaluation.protocol.scope import asked_of, judged_by, timed_documents
from pdt.evaluation.verify.stored_run import StoredRun, changed
from pdt.tokenizer import StudentTokenizer

Row = TypeVar("Row")


def check_lines(run: StoredRun) -> None:
    """Documents first, since every other line is of one of them."""
    raw, lanes = run.raw, run.model.lanes.count
    documents = {document.record_id: document for document in raw.documents}
    answered = raw.answered()
    _check_documents(run)
    _check_keys(run)
    _check_altered(run)
    for name, rows in ((GENERATIONS, raw.written), (COINED_WORDS, raw.coined)):
        _check_written(run, name, rows, documents)
    _check_each(
        run, LIKELIHOODS, raw.likelihoods, lambda row: _score_fault(row, documents[row.record_id])
    )
    _check_each(
        run,
        JUDGMENTS,
        raw.judgments,
        lambda row: _table_fault(row, answered(row), lanes),
    )
    _check_execution(run)


def check_texts(run: StoredRun, tokenizer: StudentTokenizer) -> None:
    """Every text is what its tokens say, and ends its blocks where they do."""
    block_tokens = run.results.settings.block_tokens
    for name, rows in ((GENERATIONS, run.raw.written), (COINED_WORDS, run.raw.coined)):
        _check_each(run, name, rows, lambda row: _text_fault(row, tokenizer, block_tokens))


def _check_each(
    run: StoredRun, name: str, rows: Sequence[Row], fault: Callable[[Row], str | None]
) -> None:
    for number, row in enumerate(rows, start=1):
        if (found := fault(row)) is not None:
            raise changed(run.directory / name, f"line {number} {found}")


def _check_documents(run: StoredRun) -> None:
    documents, asked = run.raw.documents, run.results.settings.documents
    names = [document.record_id for document in documents]
    _check_same(run, DOCUMENTS, names, list(dict.fromkeys(names)))
    if len(documents) != asked:
        raise changed(
            run.directory / DOCUMENTS, f"holds {len(documents)} documents; the settings say {asked}"
        )
    lanes = run.model.lanes.count
    _check_each(run, DOCUMENTS, documents, lambda document: _document_fault(document, lanes))


def _check_altered(run: StoredRun) -> None:
    """Each is of a condition that alters and of a document it takes, which keeps its facts."""
    settings, raw = run.results.settings, run.raw
    altering = [c for c in run.scope.written if c.alters is not None]
    asked = {
        (c.name, document.record_id): document
        for c, documents in asked_of(altering, raw.documents, settings).items()
        for document in documents
    }

    def fault(row: Altered) -> str | None:
        before = asked.get((row.condition, row.document.record_id))
        if before is None:
            return f"is of no such run: {row.condition} {row.document.record_id}"
        if [f.id for f in row.document.facts] != [f.id for f in before.facts]:
            return "does not have the facts of its document"
        return _document_fault(row.document, run.model.lanes.count)

    keys = [(row.condition, row.document.record_id) for row in raw.altered]
    _check_same(run, ALTERED, keys, list(dict.fromkeys(keys)))
    _check_each(run, ALTERED, raw.altered, fault)


def _check_keys(run: StoredRun) -> None:
    """Each file holds its conditions times its documents, and each screen its judgments."""
    raw, scope = run.raw, run.scope
    altered = {(row.condition, row.document.record_id) for row in raw.altered}
    for name, found, conditions, coined in (
        (GENERATIONS, raw.written, scope.written, False),
        (COINED_WORDS, raw.coined, scope.coined, True),
        (LIKELIHOODS, raw.likelihoods, scope.scored, False),
    ):
        chosen = asked_of(conditions, raw.documents, run.results.settings, coined=coined)
        asked = [
            (c.name, document.record_id)
            for c, documents in chosen.items()
            for document in documents
            if c.alters is None or (c.name, document.record_id) in altered
        ]
        _check_same(run, name, [(row.condition, row.record_id) for row in found], asked)
    _check_same(
        run,
        JUDGMENTS,
        [(row.screen, row.condition, row.record_id) for row in raw.judgments],
        [
            (screen, row.condition, row.record_id)
            for screen in run.screens
            for row in judged_by(screen, run.results.settings, raw)
        ],
    )


def _check_same(
    run: StoredRun, name: str, found: Sequence[Hashable], asked: Sequence[Hashable]
) -> None:
    """What is there is what was asked for, each once."""
    wanted, seen = set(asked), set[Hashable]()
    for number, key in enumerate(found, start=1):
        if key in seen:
            raise changed(run.directory / name, f"line {number} repeats {_shown(key)}")
        if key not in wanted:
            raise changed(run.directory / name, f"line {number} is of no such run: {_shown(key)}")
        seen.add(key)
    for key in asked:
        if key not in seen:
            raise changed(run.directory / name, f"has no line of {_shown(key)}")


def _shown(key: Hashable) -> str:
    return " ".join(key) if isinstance(key, tuple) else str(key)


def _document_fault(document: HeldOutDocument, lanes: int) -> str | None:
    tables = (
        document.section_lengths, document.dependency_tokens, document.attacked_tokens,
        document.openings,
    )  # fmt: skip
    if any(len(table) != lanes for table in tables):
        return f"does not have {lanes} lanes"
    named = [document.dependency_owner or 0]
    for fact in document.facts:
        named += [fact.owner_lane, *fact.reference_lanes, *fact.permitted_lanes]
    for choice in document.choices:
        named += [choice.owner_lane, choice.receiver_lane]
    for reference in document.references:
        named += [reference.owner_lane, reference.receiver_lane]
    if max(named) >= lanes:
        return f"names lane {max(named)} of {lanes}"
    facts = {fact.id for fact in document.facts}
    if any(reference.fact_id not in facts for reference in document.references):
        return "refers to a fact that it does not have"
    if document.transplant != draw_transplant(document.record_id, document.facts):
        return "transplants another node than its name draws"
    known = len(document.choices) + len(document.references) + len(document.unread_choices)
    if known > document.dependencies:
        return f"has {known} dependencies of {document.dependencies}"
    for choice in document.choices:
        count = len(set(choice.alternatives))
        if (
            choice.text not in choice.alternatives
            or not count == len(choice.alternatives) == len(choice.alternative_tokens)
            or math.log2(count) != choice.entropy_bits
        ):
            return f"does not give {choice.choice_id} 2^h alternatives"
    return None


def _check_written(
    run: StoredRun, name: str, rows: Sequence[Written], documents: dict[str, HeldOutDocument]
) -> None:
    """Lanes, addresses and drawn words of every text; one checkpoint has one plan a document."""
    conditions = {c.name: c for c in (*run.scope.written, *run.scope.coined)}
    seed = run.results.settings.seed
    planned: dict[Hashable, tuple[int, ...]] = {}

    def fault(row: Written) -> str | None:
        condition, document = conditions[row.condition], documents[row.record_id]
        found = _lane_fault(row, run) or _address_fault(row, condition, document, run)
        if found is not None:
            return found
        before = row.unmoved_lane_of_plan
        if before != planned.setdefault(
            (condition.weights, condition.oracle, condition.alters, row.record_id), before
        ):
            return "has its plan on other lanes than another line of its checkpoint"
        if condition.sibling_opening and (found := _opening_fault(row, document)) is not None:
            return found
        if row.forced != (draw_words([document], seed)[0] if name == COINED_WORDS else None):
            return f"does not force the words that the seed {seed} draws"
        return None

    _check_each(run, name, rows, fault)


def _lane_fault(row: Written, run: StoredRun) -> str | None:
    lanes, vocabulary = run.model.lanes.count, run.model.trunk.shape.vocabulary
    if len(row.lanes) != lanes:
        return f"has {len(row.lanes)} lanes of {lanes}"
    for order in (row.lane_of_plan, row.unmoved_lane_of_plan, row.lane_at_position):
        if sorted(order) != list(range(lanes)):
            return f"does not name every lane once: {order}"
    for lane in row.lanes:
        if not 0 < len(lane.tokens) <= run.results.settings.max_tokens:
            return f"has a lane of {len(lane.tokens)} tokens"
        if min(lane.tokens) < 0 or max(lane.tokens) >= vocabulary:
            return f"has a token that is not one of {vocabulary}"
    return None


def _opening_fault(row: Written, document: HeldOutDocument) -> str | None:
    for plan, lane in enumerate(row.lane_of_plan):
        asked = document.sibling_opening(plan).tokens
        if row.lanes[lane].tokens[: len(asked)] != asked:
            return f"does not begin lane {lane} with its sibling's first sentence"
    return None


def _address_fault(
    row: Written, condition: Condition, document: HeldOutDocument, run: StoredRun
) -> str | None:
    before = row.unmoved_lane_of_plan
    given = condition.oracle or run.results.settings.plan == "oracle" or not document.told
    if given and before != tuple(range(len(before))):
        return f"has the teacher's plans on other lanes than the teacher's: {before}"
    if row.lane_of_plan != tuple(condition.lane_after(lane) for lane in before):
        return f"has plans where {condition.name} does not put them: {row.lane_of_plan}"
    return None


def _text_fault(row: Written, tokenizer: StudentTokenizer, block_tokens: int) -> str | None:
    for number, lane in enumerate(row.lanes):
        if (lane.finish == EOS) != (lane.tokens[-1] == tokenizer.eos_id):
            return f"ends lane {number} with {lane.finish}, which its tokens do not"
        if tokenizer.prose(lane.tokens[: lane.prose_tokens]) != lane.text:
            return f"has a text of lane {number} that its tokens do not say"
        if block_ends(lane.tokens, tokenizer, block_tokens) != lane.block_ends:
            return f"does not end the blocks of lane {number} where its tokens do"
    return None


def _score_fault(row: Likelihoods, document: HeldOutDocument) -> str | None:
    if tuple(map(len, row.nll)) != document.section_lengths:
        return "does not score every token of the document's sections"
    asked = {choice.dependency_id: len(choice.alternatives) for choice in document.choices}
    if {name: len(values) for name, values in row.choices.items()} != asked:
        return "does not score the document's choices"
    return None


def _table_fault(row: Judgment, document: HeldOutDocument, lanes: int) -> str | None:
    judged = row.judged
    tables = (
        judged.stated_KF, judged.mentioned_KF, judged.hard_negative_KF, judged.altered_KF,
        judged.wrong_doer_KF,
    )  # fmt: skip
    shape = [len(document.facts)] * lanes
    if judged.place_KF is not None and [len(lane) for lane in judged.place_KF] != shape:
        return "does not place every fact in every lane"
    for table in tables:
        if table is None:
            continue
        if [len(lane) for lane in table] != shape or not set().union(*table) <= {0, 1}:
            return "is not a table of lanes and facts"
    return None


def _check_execution(run: StoredRun) -> None:
    """The first documents were written in all three ways, in every repeat."""
    ledger = run.raw.execution
    asked = [
        (side, document.record_id, str(repeat))
        for document in timed_documents(run.raw)
        for side in SIDES
        for repeat in range(run.results.settings.repeats)
    ]
    runs = () if ledger is None else ledger.runs
    found = [(row.side, row.record_id, str(row.repeat)) for row in runs]
    _check_same(run, EXECUTION, found, asked)
    for row in runs:
        parts = (
            row.cpu_seconds, row.plan_seconds, row.prefill_seconds, row.decode_seconds,
            row.barrier_seconds,
        )  # fmt: skip
        if None in parts:
            raise changed(run.directory / EXECUTION, f"{row.record_id} does not time its parts")
    sides = [] if ledger is None else [row.side for row in ledger.memory]
    if sides and sides != list(SIDES):
        raise changed(run.directory / EXECUTION, "does not give the memory of every way")
