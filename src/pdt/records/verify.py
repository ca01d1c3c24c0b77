"""Derive every label of a compiled corpus again, and report any difference.

Paper: §4.3.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from pdt.binding import refuse_other
from pdt.config import PdtConfig, validate_config
from pdt.contract import Contract, parse_contract
from pdt.errors import ContractBroken, CorruptFile, PdtError
from pdt.provenance import MANIFEST, read_json_object, sha256_file
from pdt.records.compile import Compiler
from pdt.records.corpus import CORPUS
from pdt.records.report import CorpusReport
from pdt.records.schema import TrainingRecord
from pdt.records.shards import ARRAYS, Shard
from pdt.teacher.document import TaughtDocument

TOLERANCE = 1e-5
"""Encoders on another machine may differ in the last bits of a vector; labels may not at all."""


class Difference(Contract):
    """One place where a stored record is not what its document gives."""

    shard: str
    """The file."""
    record_id: str | None = None
    """The record; none when the file as a whole is wrong."""
    field: str | None = None
    """The field of TrainingRecord."""
    what: str
    """What is stored and what was derived."""

    def __str__(self) -> str:
        place = " ".join(part for part in (self.shard, self.record_id, self.field) if part)
        return f"{place}: {self.what}"


class VerifyReport(Contract):
    """What a verification found."""

    records: int
    """Records derived again."""
    differences: tuple[Difference, ...]
    """Everything that was not the same."""


def corpus_config(directory: Path) -> PdtConfig:
    """The config a corpus was compiled with."""
    manifest = read_json_object(directory / MANIFEST)
    return validate_config(manifest.get("config", {}), where=str(directory / MANIFEST))


def corpus_shards(directory: Path) -> tuple[str, ...]:
    """The shards of a whole corpus, in order; one whose compile never ended is refused."""
    path = directory / CORPUS
    if not path.exists() or not (directory / MANIFEST).exists():
        taught = (directory / "documents.jsonl").exists()
        raise CorruptFile(
            f"{directory} is not a whole corpus: {CORPUS} or {MANIFEST} is missing.\n"
            + (
                f"It holds taught documents: `pdt record compile {directory} --preset … --out …` "
                "makes a corpus of them."
                if taught
                else "Finish it with `pdt record compile … --resume`."
            )
        )
    return parse_contract(CorpusReport, path.read_bytes(), where=str(path)).shards


def verify_corpus(
    directory: Path,
    compiler: Compiler | None = None,
    *,
    progress: Callable[[int], None] = lambda records: None,
) -> VerifyReport:
    """Read every record of `directory`, derive it anew from its document, and compare."""
    compiler = compiler or Compiler.load(corpus_config(directory))
    files = read_json_object(directory / MANIFEST).get("files", {})
    found: list[Difference] = []
    records = 0
    for name in corpus_shards(directory):
        path = directory / name
        if not path.is_file():
            found.append(Difference(shard=name, what="missing, and the manifest names it"))
            continue
        if sha256_file(path) != files.get(name, {}).get("sha256"):
            found.append(Difference(shard=name, what="not the bytes that the manifest names"))
        try:
            shard = Shard(path)
            _same_binding(shard, compiler)
            for record in shard.records():
                found += [
                    Difference(shard=name, record_id=record.record_id, field=field, what=what)
                    for field, what in record_differences(record, compiler)
                ]
                records += 1
                progress(records)
        except (CorruptFile, ContractBroken) as error:
            found.append(Difference(shard=name, what=str(error)))
    return VerifyReport(records=records, differences=tuple(found))


def _same_binding(shard: Shard, compiler: Compiler) -> None:
    refuse_other(
        shard.binding,
        compiler.binding,
        f"{shard.path} was compiled with other settings.",
        "Verify with the tokenizer, encoder and limits the shard was compiled with.",
        sides=("shard", "now"),
    )


def record_differences(record: TrainingRecord, compiler: Compiler) -> Iterator[tuple[str, str]]:
    """Every field of the record that its own document does not give."""
    try:
        document = parse_contract(TaughtDocument, record.document, where="its document")
    except PdtError as error:
        yield "document", str(error)
        return
    derived = compiler.compile(document)
    if not isinstance(derived, TrainingRecord):
        yield "document", "breaks " + "; ".join(str(failure) for failure in derived)
        return
    for name in TrainingRecord.model_fields:
        stored, again = getattr(record, name), getattr(derived, name)
        if name not in ARRAYS:
            if stored != again:
                yield name, f"stored {str(stored)[:80]!r}, derived {str(again)[:80]!r}"
        elif (difference := _array_difference(stored, again)) is not None:
            yield name, difference


def _array_difference(stored: np.ndarray, again: np.ndarray) -> str | None:
    if stored.shape != again.shape:
        return f"stored shape {stored.shape}, derived {again.shape}"
    if stored.dtype.kind == "f":
        wrong = ~np.isclose(stored, again, rtol=0, atol=TOLERANCE)
    else:
        wrong = stored != again
    if not wrong.any():
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    count, place = int(wrong.sum()), list(first)
    return f"{count} values differ; at {place} stored {stored[first]}, derived {again[first]}"
