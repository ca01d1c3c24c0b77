"""The raw lines of an evaluation and the files that hold them; every number follows from these.

    documents.jsonl     what each held-out document asks for
    altered.jsonl       what the documents ask for that a condition alters
    generations.jsonl   every text, by condition and document
    coined.jsonl        the same with the owners' words drawn for them
    judgments.jsonl     every decision of every screen
    likelihoods.jsonl   every teacher-forced token, by condition
    execution.json      what one answer costs, packed and serial

Paper: §7.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pdt.contract import Contract, parse_contract
from pdt.errors import CorruptFile
from pdt.evaluation.lines.altered import Altered
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.execution import Execution
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.lines.written import Written
from pdt.provenance import atomic_path, read_utf8

DOCUMENTS, ALTERED = "documents.jsonl", "altered.jsonl"
GENERATIONS, COINED_WORDS = "generations.jsonl", "coined.jsonl"
JUDGMENTS, LIKELIHOODS, EXECUTION = "judgments.jsonl", "likelihoods.jsonl", "execution.json"
AGAIN = "Take the directory again from its source, or run the evaluation again."

C = TypeVar("C", bound=Contract)


@dataclass
class Raw:
    """Everything the numbers are computed from."""

    documents: list[HeldOutDocument] = field(default_factory=list)
    altered: list[Altered] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    coined: list[Written] = field(default_factory=list)
    judgments: list[Judgment] = field(default_factory=list)
    likelihoods: list[Likelihoods] = field(default_factory=list)
    execution: Execution | None = None

    def answered(self) -> Callable[[Written | Judgment], HeldOutDocument]:
        """From a text, or what was found in it, to its document as its condition alters it."""
        plain = {document.record_id: document for document in self.documents}
        other = {(row.condition, row.document.record_id): row.document for row in self.altered}

        def of(row: Written | Judgment) -> HeldOutDocument:
            return other.get((row.condition, row.record_id)) or plain[row.record_id]

        return of


_LINES: dict[str, tuple[str, type[Contract]]] = {
    DOCUMENTS: ("documents", HeldOutDocument),
    ALTERED: ("altered", Altered),
    GENERATIONS: ("written", Written),
    COINED_WORDS: ("coined", Written),
    JUDGMENTS: ("judgments", Judgment),
    LIKELIHOODS: ("likelihoods", Likelihoods),
}
RAW_FILES = (*_LINES, EXECUTION)


def write_raw(directory: Path, raw: Raw) -> None:
    """The raw files of a result directory."""
    for name, (attribute, _) in _LINES.items():
        write_lines(directory / name, getattr(raw, attribute))
    if raw.execution is not None:
        with atomic_path(directory / EXECUTION) as partial:
            partial.write_text(raw.execution.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_raw(directory: Path) -> Raw:
    """The raw files again; a line that is not of its schema is refused by place."""
    values: dict[str, Any] = {
        attribute: list(read_lines(directory / name, kind))
        for name, (attribute, kind) in _LINES.items()
    }
    path = directory / EXECUTION
    if path.is_file():
        values["execution"] = read_contract(path, Execution)
    return Raw(**values)


def write_lines(path: Path, rows: Sequence[Contract]) -> None:
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(row.model_dump_json() + "\n" for row in rows)


def read_contract(path: Path, kind: type[C]) -> C:
    text = read_utf8(path, remedy=AGAIN)
    return parse_contract(kind, text, where=str(path), remedy=AGAIN)


def read_lines(path: Path, kind: type[C]) -> Iterator[C]:
    if not path.is_file():
        raise CorruptFile(f"{path} is missing.\n{AGAIN}")
    text = read_utf8(path, remedy=AGAIN)
    # Not splitlines: a lane may have written a line separator of Unicode, which JSON leaves bare.
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        yield parse_contract(kind, line, where=f"{path}:{number}", remedy=AGAIN)
