"""A saved generation run again: exactly, or from any barrier another way.

Paper: §7.3 (the exact target is rerun), §3.6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from pydantic import TypeAdapter

from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.generation import interventions as kinds
from pdt.generation.interventions import Intervention
from pdt.generation.loop import Generation, start
from pdt.generation.trace import Trace, check_model, trace_of
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.tokenizer import StudentTokenizer

CLOSE = 1e-4
"""Plans made again elsewhere may differ in the last bits of a vector; nothing else may."""


def replay(model: ParallelDecoder, trace: Trace, tokenizer: StudentTokenizer | None) -> Generation:
    """The same generation again, planned anew; run it and compare with `differences`."""
    return _restart(model, trace, tokenizer, [], None, plans=None if trace.planned else trace.plans)


def continue_from(
    model: ParallelDecoder,
    trace: Trace,
    block: int,
    added: Sequence[Intervention],
    tokenizer: StudentTokenizer | None,
) -> Generation:
    """As traced up to the barrier before `block`, then on under further interventions."""
    later = _from_barrier(added, block, len(trace.codes))
    forced = block * trace.block_tokens
    return _restart(model, trace, tokenizer, later, forced, plans=trace.plans)


def branch(
    generation: Generation,
    block: int,
    added: Sequence[Intervention],
    tokenizer: StudentTokenizer | None,
) -> Generation:
    """`continue_from` of one that lies on no disk, and may still be writing after that barrier."""
    later = _from_barrier(added, block, len(generation.bus.blocks))
    kept = block * generation.model.config.lanes.block_tokens
    return start(
        generation.model,
        generation.prompts,
        generation.settings,
        tokenizer=tokenizer,
        interventions=[*generation.interventions, *later],
        plans=generation.plans,
        forced=[[writer.tokens[:kept] for writer in row] for row in generation.writers],
    )


def _from_barrier(added: Sequence[Intervention], block: int, barriers: int) -> list[Intervention]:
    """Further edits, none in force before `block`."""
    if not 0 <= block <= barriers:
        raise UsageError(f"Block {block} cannot be continued from: there are 0 to {barriers}.")
    return [replace(edit, from_block=max(edit.from_block, block)) for edit in added]


def differences(trace: Trace, generation: Generation, digest: str | None = None) -> list[str]:
    """Where a replay left the trace, in anything it holds; empty when it is the same.

    `digest` is the model's, where it is known.
    """
    again = trace_of(generation, digest)
    return [
        *_other_plans(trace.plans, again.plans),
        *_other_lanes(trace, again),
        *_other_notes(trace, again),
    ]


def _other_plans(ours: PlanSet, theirs: PlanSet) -> Iterator[str]:
    if not torch.equal(ours.valid_BKN, theirs.valid_BKN):
        yield "plans: other nodes exist"
    for what, a, b in (
        ("nodes", ours.nodes_BKNP, theirs.nodes_BKNP),
        ("presentation scores", ours.scores_BK, theirs.scores_BK),
    ):
        if not torch.allclose(a, b, rtol=CLOSE, atol=CLOSE):
            yield f"plans: other {what}"


def _other_lanes(trace: Trace, again: Trace) -> Iterator[str]:
    for document, (ours, theirs) in enumerate(zip(trace.lanes, again.lanes, strict=True)):
        for lane, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                pairs = zip(a.tokens, b.tokens, strict=False)
                at = next((i for i, (x, y) in enumerate(pairs) if x != y), None)
                where = "its end" if at is None else f"token {at}"
                yield f"document {document}, lane {lane}: differs at {where}"


def _other_notes(trace: Trace, again: Trace) -> Iterator[str]:
    if len(trace.codes) != len(again.codes):
        yield f"the trace has {len(trace.codes)} barriers, the replay {len(again.codes)}"
    for block, sides in enumerate(zip(_published(trace), _published(again), strict=False)):
        if sides[0] != sides[1]:
            yield f"block {block}: other codes were published"
    for block, (did, does) in enumerate(zip(trace.published, again.published, strict=False)):
        if did != does:
            yield f"block {block}: other lanes published"


def _published(trace: Trace) -> Iterator[list[tuple[int, ...] | None]]:
    """By block, the codes of each document and lane; None of a lane that published nothing."""
    for codes, published in zip(trace.codes, trace.published, strict=True):
        yield [
            note if told else None
            for row, lanes in zip(codes, published, strict=True)
            for note, told in zip(row, lanes, strict=True)
        ]


def _restart(
    model: ParallelDecoder,
    trace: Trace,
    tokenizer: StudentTokenizer | None,
    added: Sequence[Intervention],
    forced_tokens: int | None,
    plans: PlanSet | None,
) -> Generation:
    check_model(model, trace)
    _check_fits(trace, model)
    before = [_intervention(spec) for spec in trace.interventions]
    forced = None
    if forced_tokens is not None:
        forced = [[lane.tokens[:forced_tokens] for lane in row] for row in trace.lanes]
    return start(
        model,
        trace.prompts,
        trace.settings,
        tokenizer=tokenizer,
        interventions=[*before, *added],
        plans=plans,
        forced=forced,
    )


def _check_fits(trace: Trace, model: ParallelDecoder) -> None:
    """A trace that was signed again may say anything; it must at least be of this model's sizes."""
    config = model.config
    sizes = (config.lanes.count, config.planner.nodes, config.planner.width)
    vocabulary = config.trunk.shape.vocabulary
    largest = max((t for row in trace.lanes for lane in row for t in lane.tokens), default=0)
    rows = [
        ("lanes, nodes, width", trace.shape[1:], sizes),
        ("block tokens", trace.block_tokens, config.lanes.block_tokens),
        ("largest token", largest, min(largest, vocabulary - 1)),
    ]
    if wrong := [row for row in rows if row[1] != row[2]]:
        raise BindingMismatch(
            "The trace does not fit the model that it names.",
            wrong,
            "It was changed after it was saved. Save it again with --trace.",
            sides=("trace", "model"),
        )


def _intervention(spec: dict[str, Any]) -> Intervention:
    given = {key: value for key, value in spec.items() if key != "kind"}
    kind: Any = getattr(kinds, str(spec.get("kind")), None)
    if not _is_intervention(kind):
        raise CorruptFile(f"The trace names an intervention {spec.get('kind')!r} that is none.")
    unknown = given.keys() - {field.name for field in fields(kind)}
    try:
        if unknown:
            raise ValueError(f"it has no {min(unknown)!r}")
        built: Intervention = TypeAdapter(kind).validate_python(given)
    except ValueError as error:
        raise CorruptFile(
            f"The trace's {kind.__name__} cannot be: {error}\nSave the trace again."
        ) from error
    return built


def _is_intervention(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Intervention)
