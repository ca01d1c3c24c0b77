"""The held-out documents of a corpus in batches, with their padded tensors.

Paper: §7.1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pdt.contract import parse_contract
from pdt.errors import UsageError
from pdt.evaluation.generate.held_out import held_out
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.records.batch import RecordBatch, RecordShards, collate
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer


@dataclass(frozen=True)
class HeldOutBatch:
    """Documents with their padded tensors."""

    documents: tuple[HeldOutDocument, ...]
    records: RecordBatch


Pair = tuple[HeldOutDocument, dict[str, Any]]
"""A document as the measures see it, and the row of the shard that it came from."""


def held_out_pairs(
    shards: RecordShards, tokenizer: StudentTokenizer, *, documents: int
) -> list[Pair]:
    """The first `documents` of the corpus."""
    rows = list(_first_rows(shards, documents))
    if len(rows) < 2:
        raise UsageError(
            f"{shards.directory} holds {len(rows)} documents of the split {shards.split}; an "
            "evaluation needs two or more.\nWrite a corpus of that split and compile it, or give "
            "--split."
        )
    return [(held_out(row, tokenizer), row) for row in rows]


def batch_of(pairs: Sequence[Pair]) -> HeldOutBatch:
    """Documents side by side."""
    return HeldOutBatch(
        tuple(document for document, _ in pairs), collate([row for _, row in pairs])
    )


def teacher_prose(
    shards: RecordShards, tokenizer: StudentTokenizer, *, documents: int
) -> list[tuple[HeldOutDocument, list[str]]]:
    """Documents with the teacher's own sections, for calibration."""
    prose = []
    for row in _first_rows(shards, documents):
        taught = parse_contract(TaughtDocument, row["document"], where=row["record_id"])
        texts = [section.text for section in taught.answer.sections]
        prose.append((held_out(row, tokenizer), texts))
    return prose


def batch_borders(documents: int, size: int) -> list[int]:
    """As even as can be, and never of one document: notes are exchanged inside a batch."""
    count = max(1, min(-(-documents // size), documents // 2))
    return [round(n * documents / count) for n in range(count + 1)]


def _first_rows(shards: RecordShards, documents: int) -> Iterator[dict[str, Any]]:
    taken = 0
    for shard in shards.shards:
        for row in shard.rows():
            if taken == documents:
                return
            if shards.split is None or row["split"] == shards.split:
                taken += 1
                yield row
