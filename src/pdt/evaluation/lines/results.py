"""What an evaluation keeps: settings, raw lines, and the numbers that follow from them.

    documents.jsonl     what each held-out document asks for
    generations.jsonl   every text, by condition and document
    coined.jsonl        the same with the owners' words drawn for them
    judgments.jsonl     every decision of every screen
    likelihoods.jsonl   every teacher-forced token, by condition
    execution.json      what one answer costs, packed and serial
    results.json        settings, measures and gates, all of which follow from the files above

Paper: §7.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from pdt.contract import Contract, Id, Index, Line, Sha256, parse_contract
from pdt.errors import CorruptFile
from pdt.evaluation.generate.held_out import HeldOutDocument
from pdt.evaluation.lines.execution import Execution
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.communication import Likelihoods
from pdt.evaluation.measures.longform import LongformLimits
from pdt.evaluation.protocol.evidence_gates import Judgement
from pdt.provenance import atomic_path, read_utf8

DOCUMENTS, GENERATIONS, COINED = "documents.jsonl", "generations.jsonl", "coined.jsonl"
JUDGMENTS, LIKELIHOODS, EXECUTION = "judgments.jsonl", "likelihoods.jsonl", "execution.json"
RESULTS = "results.json"
AGAIN = "Take the directory again from its source, or run the evaluation again."

C = TypeVar("C", bound=Contract)


class EvaluationSettings(Contract):
    """What was asked for; the same settings on the same files give the same numbers."""

    documents: Annotated[int, Field(ge=2)] = 256
    """Held-out documents that were judged, the first of the corpus."""
    batch: Annotated[int, Field(ge=2)] = 32
    """Documents that are written side by side."""
    plan: Literal["learned", "oracle"] = "learned"
    """The plan that every condition but `oracle` starts from."""
    conditions: tuple[Id, ...] = ()
    """Which ones ran; empty for all."""
    screen: Literal["exact", "nli"] = "exact"
    """The screen whose judgments the tables use."""
    nli_documents: Index = 32
    """How many documents the NLI screen judges beside the exact one."""
    max_tokens: Annotated[int, Field(ge=1)] = 1000
    longform: LongformLimits
    block_tokens: Annotated[int, Field(ge=1)]
    window_blocks: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    resamples: Annotated[int, Field(ge=100)] = 10_000
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


class Results(Contract):
    """results.json."""

    schema_version: Literal["pdt.results/2"] = "pdt.results/2"
    settings: EvaluationSettings
    models: dict[str, Line]
    """The digest of each checkpoint that ran, by its role."""
    made_from: Sha256
    """Of the config and inputs that the manifest names."""
    measures: dict[str, Measure]
    gates: tuple[Judgement, ...]


@dataclass
class Raw:
    """Everything the numbers are computed from."""

    documents: list[HeldOutDocument] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    coined: list[Written] = field(default_factory=list)
    judgments: list[Judgment] = field(default_factory=list)
    likelihoods: list[Likelihoods] = field(default_factory=list)
    execution: Execution | None = None


_LINES: dict[str, tuple[str, type[Contract]]] = {
    DOCUMENTS: ("documents", HeldOutDocument),
    GENERATIONS: ("written", Written),
    COINED: ("coined", Written),
    JUDGMENTS: ("judgments", Judgment),
    LIKELIHOODS: ("likelihoods", Likelihoods),
}


def write_raw(directory: Path, raw: Raw) -> None:
    """The raw files of a result directory."""
    for name, (attribute, _) in _LINES.items():
        _write_lines(directory / name, getattr(raw, attribute))
    if raw.execution is not None:
        with atomic_path(directory / EXECUTION) as partial:
            partial.write_text(raw.execution.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_raw(directory: Path) -> Raw:
    """The raw files again; a line that is not of its schema is refused by place."""
    values: dict[str, Any] = {
        attribute: list(_read_lines(directory / name, kind))
        for name, (attribute, kind) in _LINES.items()
    }
    path = directory / EXECUTION
    if path.is_file():
        values["execution"] = _read(path, Execution)
    return Raw(**values)


def read_results(directory: Path) -> Results:
    path = directory / RESULTS
    if not path.is_file():
        raise CorruptFile(f"{path} is missing.\nIs {directory} a directory of `pdt eval run`?")
    return _read(path, Results)


def _write_lines(path: Path, rows: Sequence[Contract]) -> None:
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(row.model_dump_json() + "\n" for row in rows)


def _read(path: Path, kind: type[C]) -> C:
    text = read_utf8(path, remedy=AGAIN)
    return parse_contract(kind, text, where=str(path), remedy=AGAIN)


def _read_lines(path: Path, kind: type[C]) -> Iterator[C]:
    if not path.is_file():
        raise CorruptFile(f"{path} is missing.\n{AGAIN}")
    text = read_utf8(path, remedy=AGAIN)
    # Not splitlines: a lane may have written a line separator of Unicode, which JSON leaves bare.
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        yield parse_contract(kind, line, where=f"{path}:{number}", remedy=AGAIN)
