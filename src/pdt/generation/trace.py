"""A generation on disk: what went in, what was planned, written and published.

Paper: §7.3 (the exact target is rerun), §3.6.
"""

import base64
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy
import torch
from pydantic import Field, ValidationError, model_validator
from torch import Tensor

from pdt.config import Strict
from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.generation.events import FinishReason
from pdt.generation.interventions import Intervention
from pdt.generation.ledger import Ledger
from pdt.generation.loop import Generation
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.trunk import tensors_digest
from pdt.provenance import read_json_object, sha256_json, write_json

FORMAT = 1
Token = Annotated[int, Field(ge=0)]


class Array(Strict):
    """A tensor, bit for bit."""

    dtype: Literal["float32", "bool"]
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    data: str

    @model_validator(mode="after")
    def _whole(self) -> "Array":
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except ValueError as error:
            raise ValueError(f"its data is not base64: {error}") from error
        if size != math.prod(self.shape) * numpy.dtype(self.dtype).itemsize:
            raise ValueError(f"it has {size} bytes, which are not {self.dtype} of {self.shape}")
        return self


class TracedLane(Strict):
    """What one lane wrote."""

    tokens: tuple[Token, ...]
    text: str
    reason: FinishReason


class TracedDrafts(Strict):
    """How the rounds went, where lanes drafted: no part of what was written."""

    rounds: int
    drafted: tuple[tuple[int, ...], ...]
    """Tokens by document and lane."""
    accepted: tuple[tuple[int, ...], ...]


class Trace(Strict):
    """One generation: what went in, what was planned, written and published."""

    format: int
    model_digest: str
    block_tokens: int
    prompts: tuple[tuple[Token, ...], ...]
    settings: GenerationSettings
    interventions: tuple[dict[str, Any], ...]
    planned: bool = True
    """The planner made the plans; else they were given."""
    plan_nodes: Array
    plan_valid: Array
    plan_scores: Array
    lanes: tuple[tuple[TracedLane, ...], ...]
    """By document and lane."""
    codes: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    """By block, document and lane."""
    published: tuple[tuple[tuple[bool, ...], ...], ...]
    drafts: TracedDrafts | None = None

    @property
    def plans(self) -> PlanSet:
        nodes, valid, scores = (
            _tensor(a) for a in (self.plan_nodes, self.plan_valid, self.plan_scores)
        )
        return PlanSet(nodes, valid, scores)

    @property
    def shape(self) -> tuple[int, ...]:
        """Documents, lanes, plan nodes and their width."""
        return self.plan_nodes.shape

    @model_validator(mode="after")
    def _agrees(self) -> "Trace":
        if len(self.shape) != 4 or self.plan_nodes.dtype != "float32":
            raise ValueError(f"plan_nodes is {self.plan_nodes.dtype} {self.shape}, not four axes")
        B, K, N, _ = self.shape
        if self.plan_valid.shape != (B, K, N) or self.plan_valid.dtype != "bool":
            raise ValueError(f"plan_valid is not bool of {(B, K, N)}")
        if self.plan_scores.shape != (B, K) or self.plan_scores.dtype != "float32":
            raise ValueError(f"plan_scores is not float32 of {(B, K)}")
        if len(self.prompts) != B or [len(row) for row in self.lanes] != [K] * B:
            raise ValueError(f"prompts and lanes are not those of {B} documents of {K} lanes")
        for blocks in (self.codes, self.published):
            if len(blocks) != len(self.codes) or any(
                [len(row) for row in block] != [K] * B for block in blocks
            ):
                raise ValueError("codes and published are not one a block, document and lane")
        return self


def model_digest(model: ParallelDecoder) -> str:
    """Of every parameter and the architecture: what a trace belongs to."""
    blocks = ((name, own) for name, own in model.named_buffers() if name.endswith(".blocks"))
    weights = tensors_digest(sorted([*model.named_parameters(), *blocks]))
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
        planned=generation.planned,
        plan_nodes=_array(plans.nodes_BKNP),
        plan_valid=_array(plans.valid_BKN),
        plan_scores=_array(plans.scores_BK),
        lanes=tuple(
            tuple(TracedLane(tokens=s.tokens, text=s.text, reason=s.reason) for s in row)
            for row in sections
        ),
        codes=_nested(note.codes_BKM for note in generation.bus.blocks),
        published=_nested(note.published_BK for note in generation.bus.blocks),
        drafts=_drafts(generation.ledger) if generation.settings.drafts else None,
    )


def _drafts(ledger: Ledger) -> TracedDrafts:
    return TracedDrafts(
        rounds=ledger.rounds,
        drafted=tuple(map(tuple, ledger.drafted_tokens)),
        accepted=tuple(map(tuple, ledger.accepted_tokens)),
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


def _intervention_json(intervention: Intervention) -> dict[str, Any]:
    """As JSON would give it back, so that a trace equals itself after a round trip."""
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(intervention).items()}
    return {"kind": type(intervention).__name__, **fields}


def _nested(blocks: Iterable[Tensor]) -> Any:
    """Tensors as tuples of tuples, so that two traces compare as values."""

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return tuple(frozen(block.tolist()) for block in blocks)


def _array(value: Tensor) -> Array:
    array = numpy.ascontiguousarray(value.detach().cpu().numpy())
    data = base64.b64encode(array.tobytes()).decode()
    return Array.model_validate({"dtype": str(array.dtype), "shape": array.shape, "data": data})


def _tensor(array: Array) -> Tensor:
    flat = numpy.frombuffer(base64.b64decode(array.data), dtype=array.dtype)
    return torch.from_numpy(flat.reshape(array.shape).copy())
