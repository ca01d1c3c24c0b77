"""A generation on disk: shown, replayed exactly, or continued from any barrier another way.

Paper: §7.3 (the exact target is rerun), §3.6.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy
import torch
from pydantic import ValidationError
from torch import Tensor

from pdt.config import Strict
from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.generation import interventions as kinds
from pdt.generation.interventions import Intervention
from pdt.generation.loop import Generation, start
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.trunk import tensors_digest
from pdt.provenance import read_json_object, sha256_json, write_json
from pdt.tokenizer import StudentTokenizer

FORMAT = 1


class Array(Strict):
    """A tensor, bit for bit."""

    dtype: str
    shape: tuple[int, ...]
    data: str


class TracedLane(Strict):
    """What one lane wrote."""

    tokens: tuple[int, ...]
    text: str
    reason: str


class Trace(Strict):
    """One generation: what went in, what was planned, written and published."""

    format: int
    model_digest: str
    block_tokens: int
    prompts: tuple[tuple[int, ...], ...]
    settings: GenerationSettings
    interventions: tuple[dict[str, Any], ...]
    plan_nodes: Array
    plan_valid: Array
    plan_scores: Array
    lanes: tuple[tuple[TracedLane, ...], ...]
    """By document and lane."""
    codes: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    """By block, document and lane."""
    published: tuple[tuple[tuple[bool, ...], ...], ...]

    @property
    def plans(self) -> PlanSet:
        nodes, valid, scores = (
            _tensor(a) for a in (self.plan_nodes, self.plan_valid, self.plan_scores)
        )
        return PlanSet(nodes, valid, scores)


def model_digest(model: ParallelDecoder) -> str:
    """Of every parameter and the architecture: what a trace belongs to."""
    weights = tensors_digest(sorted(model.named_parameters()))
    config = model.config
    parts = [config.trunk.shape, config.lanes, config.planner, config.reads, config.notes]
    return sha256_json([weights, *(part.model_dump(mode="json") for part in parts)])


def check_model(model: ParallelDecoder, trace: Trace) -> None:
    """Refuse another model than the one that wrote the trace."""
    found = model_digest(model)
    if found != trace.model_digest:
        raise BindingMismatch(
            "The trace is of another model.",
            [("model digest", trace.model_digest[:16], found[:16])],
            "Give the model that wrote it.",
            sides=("trace", "model"),
        )


def trace_of(generation: Generation, digest: str | None = None) -> Trace:
    """The trace of a generation that has run; `digest` is the model's, where it is known."""
    plans = generation.plans
    if plans is None or any(w.reason is None for row in generation.writers for w in row):
        raise UsageError("The generation has not run to its end; a trace is taken after that.")
    sections = [[writer.section() for writer in row] for row in generation.writers]
    return Trace(
        format=FORMAT,
        model_digest=digest or model_digest(generation.model),
        block_tokens=generation.model.config.lanes.block_tokens,
        prompts=tuple(tuple(prompt) for prompt in generation.prompts),
        settings=generation.settings,
        interventions=tuple(_intervention_json(i) for i in generation.interventions),
        plan_nodes=_array(plans.nodes_BKNP),
        plan_valid=_array(plans.valid_BKN),
        plan_scores=_array(plans.scores_BK),
        lanes=tuple(
            tuple(TracedLane(tokens=s.tokens, text=s.text, reason=s.reason) for s in row)
            for row in sections
        ),
        codes=_nested(note.codes_BKM for note in generation.bus.blocks),
        published=_nested(note.published_BK for note in generation.bus.blocks),
    )


def sealed(trace: Trace) -> dict[str, Any]:
    """What a trace's file holds: the trace, and a digest that a change by hand would break."""
    body = trace.model_dump(mode="json")
    return {"digest": sha256_json(body), "trace": body}


def save_trace(trace: Trace, path: Path) -> None:
    write_json(path, sealed(trace))


def load_trace(path: Path) -> Trace:
    """Read a trace; one that was changed by hand is refused."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist. Give a trace saved with --trace.")
    saved = read_json_object(path)
    body = saved.get("trace")
    if not isinstance(body, dict) or saved.get("digest") != sha256_json(body):
        raise CorruptFile(
            f"{path} is not a trace, or was changed after it was saved.\nSave it again."
        )
    if body.get("format") != FORMAT:
        raise CorruptFile(f"{path} has format {body.get('format')!r}; this pdt reads {FORMAT}.")
    try:
        return Trace.model_validate(body)
    except ValidationError as error:
        raise CorruptFile(f"{path} is not a trace: {error}") from error


def replay(model: ParallelDecoder, trace: Trace, tokenizer: StudentTokenizer | None) -> Generation:
    """The same generation again; run it and compare with `differences`."""
    return _restart(model, trace, tokenizer, [], None)


def continue_from(
    model: ParallelDecoder,
    trace: Trace,
    block: int,
    added: Sequence[Intervention],
    tokenizer: StudentTokenizer | None,
) -> Generation:
    """As traced up to the barrier before `block`, then on under further interventions."""
    later = _from_barrier(added, block, len(trace.codes))
    return _restart(model, trace, tokenizer, later, block * trace.block_tokens)


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


def differences(trace: Trace, generation: Generation) -> list[str]:
    """Where a replay left the trace; empty when it is the same, token by token, code by code."""
    again = trace_of(generation)
    found = []
    for document, (ours, theirs) in enumerate(zip(trace.lanes, again.lanes, strict=True)):
        for lane, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a != b:
                pairs = zip(a.tokens, b.tokens, strict=False)
                at = next((i for i, (x, y) in enumerate(pairs) if x != y), None)
                where = "its end" if at is None else f"token {at}"
                found.append(f"document {document}, lane {lane}: differs at {where}")
    for block, (codes, other) in enumerate(zip(trace.codes, again.codes, strict=False)):
        if codes != other:
            found.append(f"block {block}: other codes were published")
    return found


def _restart(
    model: ParallelDecoder,
    trace: Trace,
    tokenizer: StudentTokenizer | None,
    added: Sequence[Intervention],
    forced_tokens: int | None,
) -> Generation:
    check_model(model, trace)
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
        plans=trace.plans,
        forced=forced,
    )


def _intervention_json(intervention: Intervention) -> dict[str, Any]:
    """As JSON would give it back, so that a trace equals itself after a round trip."""
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(intervention).items()}
    return {"kind": type(intervention).__name__, **fields}


def _intervention(spec: dict[str, Any]) -> Intervention:
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in spec.items() if k != "kind"}
    kind: Any = getattr(kinds, str(spec.get("kind")), None)
    if not _is_intervention(kind):
        raise CorruptFile(f"The trace names an intervention {spec.get('kind')!r} that is none.")
    built: Intervention = kind(**fields)
    return built


def _is_intervention(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Intervention)


def _nested(blocks: Iterable[Tensor]) -> Any:
    """Tensors as tuples of tuples, so that two traces compare as values."""

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return tuple(frozen(block.tolist()) for block in blocks)


def _array(value: Tensor) -> Array:
    array = numpy.ascontiguousarray(value.detach().cpu().numpy())
    data = base64.b64encode(array.tobytes()).decode()
    return Array(dtype=str(array.dtype), shape=array.shape, data=data)


def _tensor(array: Array) -> Tensor:
    flat = numpy.frombuffer(base64.b64decode(array.data), dtype=array.dtype)
    return torch.from_numpy(flat.reshape(array.shape).copy())
