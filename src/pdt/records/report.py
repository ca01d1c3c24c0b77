"""What became of the documents: of one shard, and of a whole corpus."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue

from pdt.contract import Contract, Sha256
from pdt.errors import ContractBroken
from pdt.records.inputs import duplicate_id, read_lines
from pdt.teacher.checks import CheckFailure


class ShardReport(Contract):
    """What became of the documents of one shard."""

    shard: str
    """The Parquet file."""
    sha256: Sha256
    """Its digest."""
    input_sha256: Sha256
    """Digest of the documents it was made from."""
    documents: int
    """Documents read."""
    records: dict[str, int]
    """Accepted records by split."""
    keys: list[tuple[str, str, str]]
    """Record id, family key and split of every document read, in order."""
    rejected: dict[str, tuple[CheckFailure, ...]]
    """Every broken rule of every rejected document, by record id."""


class CorpusReport(Contract):
    """What a compiled directory holds."""

    schema_version: Literal["pdt.corpus/1"] = "pdt.corpus/1"
    """The version of this contract."""
    documents: int
    """Documents read."""
    records: dict[str, int]
    """Accepted records by split."""
    rejected: int
    """Rejected documents."""
    rejections_by_rule: dict[str, int]
    """Rejected documents by the rule they broke; one document may break several."""
    shards: tuple[str, ...]
    """Parquet files in order."""
    binding: dict[str, JsonValue] = Field(default_factory=dict)
    """Tokenizer, encoder, projection and limits that every shard is bound to."""


class Totals:
    """The sum of all shards."""

    def __init__(self) -> None:
        self.documents = 0
        self.rejected = 0
        self.records: Counter[str] = Counter()
        self.by_rule: Counter[str] = Counter()
        self.shards: list[str] = []

    def add(self, report: ShardReport) -> None:
        self.documents += report.documents
        self.rejected += len(report.rejected)
        self.records.update(report.records)
        for failures in report.rejected.values():
            self.by_rule.update({failure.rule for failure in failures})
        self.shards.append(report.shard)

    def report(self, binding: dict[str, Any]) -> CorpusReport:
        return CorpusReport(
            documents=self.documents,
            records=dict(sorted(self.records.items())),
            rejected=self.rejected,
            rejections_by_rule=dict(sorted(self.by_rule.items())),
            shards=tuple(self.shards),
            binding=binding,
        )


class Seen:
    """Ids and families so far, as 8-byte hashes, so that memory stays small."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self.ids: set[int] = set()
        self.splits: dict[int, str] = {}

    def add(self, report: ShardReport) -> None:
        for record_id, family, split in report.keys:
            key = _key(record_id)
            if key in self.ids:
                self._refuse(record_id)
            self.ids.add(key)
            first = self.splits.setdefault(_key(family), split)
            if first != split:
                raise ContractBroken(
                    f"{report.shard}: record {record_id} puts family {family!r} into {split}, "
                    f"but it is already in {first}.",
                    "Related documents fall into one split (Table 1). Move one of them.",
                )

    def _refuse(self, record_id: str) -> None:
        places = [
            line.where for line in read_lines(self.files) if line.parse().record_id == record_id
        ]
        if len(places) > 1:
            raise duplicate_id(record_id, places[0], places[1])


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
