"""Many documents to a directory of shards: streamed, resumable, the same bytes from any workers.

The shard is the unit: `shard-00000.parquet`, then `shard-00000.json`, which says that it is whole.
A killed compile loses at most the shards in flight; `resume` keeps the others. `manifest.json` is
written last and names every file.

Paper: §4.3.
"""

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue

from pdt.config import PdtConfig
from pdt.contract import Contract, Sha256, parse_contract
from pdt.errors import BindingMismatch, ContractBroken, PdtError, UsageError
from pdt.provenance import read_json_object, sha256_file, write_json, write_manifest
from pdt.records.compile import Compiler
from pdt.records.inputs import (
    DocumentLine,
    document_files,
    duplicate_id,
    input_digests,
    lines_digest,
    read_lines,
)
from pdt.records.schema import TrainingRecord
from pdt.records.shards import write_shard
from pdt.teacher.checks import CheckFailure

CORPUS = "corpus.json"
BINDING = "binding.json"


_worker: Compiler | None = None
"""The compiler of this worker process."""


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


_Outcome = ShardReport | tuple[type[PdtError], str]
"""A worker's report, or its refusal as values: not every error survives being pickled."""


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


def compile_corpus(
    inputs: Sequence[Path],
    out: Path,
    config: PdtConfig,
    *,
    workers: int = 1,
    resume: bool = False,
    progress: Callable[[ShardReport], None] = lambda report: None,
) -> CorpusReport:
    """Compile every document of `inputs` into `out`; the result does not depend on `workers`."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not resume:
        raise UsageError(f"{out} exists and is not empty.\nChoose another --out, or add --resume.")
    files = document_files(inputs)
    compiler = Compiler.load(config)
    out.mkdir(parents=True, exist_ok=True)
    _bind(out, compiler.binding)
    for stray in out.glob(".*.partial"):
        stray.unlink()
    totals, seen = _Totals(), _Seen(files)
    for report in _reports(files, out, config, compiler, workers):
        seen.add(report)
        totals.add(report)
        progress(report)
    if not totals.documents:
        raise ContractBroken(
            f"{', '.join(map(str, files))} hold no document.", "Give files with documents."
        )
    _refuse_strangers(out, totals.shards)
    corpus = totals.report(compiler.binding)
    write_json(out / CORPUS, corpus.model_dump(mode="json"))
    write_manifest(
        out,
        made_by="pdt record compile",
        config=config.model_dump(mode="json"),
        inputs=input_digests(files),
    )
    return corpus


def _bind(out: Path, binding: dict[str, Any]) -> None:
    path = out / BINDING
    if not path.exists():
        write_json(path, binding)
        return
    old = read_json_object(path)
    rows = [
        (key, old.get(key), binding.get(key))
        for key in sorted({*old, *binding})
        if old.get(key) != binding.get(key)
    ]
    if rows:
        raise BindingMismatch(
            f"{out} was started with other settings.",
            rows,
            "A corpus has one tokenizer, encoder and set of limits. Choose another --out.",
            sides=("directory", "now"),
        )


def _refuse_strangers(out: Path, shards: Sequence[str]) -> None:
    extra = sorted({path.name for path in out.glob("shard-*.parquet")} - set(shards))
    if extra:
        raise BindingMismatch(
            f"{out} holds shards of other documents.",
            [("shards", ", ".join(extra[:3]), f"{len(shards)} shards")],
            "The input is shorter than when the compile began. Choose another --out.",
            sides=("directory", "input"),
        )


def _reports(
    files: Sequence[Path], out: Path, config: PdtConfig, compiler: Compiler, workers: int
) -> Iterator[ShardReport]:
    """Every shard's report in order; at most two shards a worker are in memory."""
    tasks = enumerate(_chunks(read_lines(files), config.records.shard_records))
    if workers == 1:
        for index, lines in tasks:
            yield compile_shard(compiler, index, lines, out)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_start_worker, initargs=(config,)
    )
    running: dict[Future[_Outcome], int] = {}
    ready: dict[int, ShardReport] = {}
    due = 0
    try:
        for index, lines in tasks:
            running[pool.submit(_in_worker, index, lines, out)] = index
            while len(running) + len(ready) >= 2 * workers:
                _collect(running, ready)
                while due in ready:
                    yield ready.pop(due)
                    due += 1
        while running or ready:
            _collect(running, ready)
            while due in ready:
                yield ready.pop(due)
                due += 1
    finally:
        pool.shutdown(cancel_futures=True)


def _chunks(lines: Iterable[DocumentLine], size: int) -> Iterator[tuple[DocumentLine, ...]]:
    rest = iter(lines)
    while chunk := tuple(islice(rest, size)):
        yield chunk


def _collect(running: dict[Future[_Outcome], int], ready: dict[int, ShardReport]) -> None:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        index, outcome = running.pop(future), future.result()
        if isinstance(outcome, ShardReport):
            ready[index] = outcome
        else:
            raise _refusal(*outcome)


def _start_worker(config: PdtConfig) -> None:
    global _worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = Compiler.load(config)


def _end_with_parent() -> None:
    """A killed compile leaves no process behind that could write beside its successor."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_worker(index: int, lines: Sequence[DocumentLine], out: Path) -> _Outcome:
    assert _worker is not None
    try:
        return compile_shard(_worker, index, lines, out)
    except PdtError as error:
        return type(error), str(error)


def _refusal(kind: type[PdtError], message: str) -> PdtError:
    """The worker's refusal again; its constructor may want more than the message."""
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def compile_shard(
    compiler: Compiler, index: int, lines: Sequence[DocumentLine], out: Path
) -> ShardReport:
    """One shard, or the one that is already whole on disk."""
    shard = out / f"shard-{index:05d}.parquet"
    digest = lines_digest(lines)
    if (kept := _finished(shard, digest)) is not None:
        return kept
    records: list[TrainingRecord] = []
    rejected: dict[str, tuple[CheckFailure, ...]] = {}
    keys: list[tuple[str, str, str]] = []
    for line in lines:
        document = line.parse()
        keys.append((document.record_id, document.family_key, document.split))
        result = compiler.compile(document)
        if isinstance(result, TrainingRecord):
            records.append(result)
        else:
            rejected[document.record_id] = tuple(result)
    write_shard(shard, records, compiler.binding)
    report = ShardReport(
        shard=shard.name,
        sha256=sha256_file(shard),
        input_sha256=digest,
        documents=len(lines),
        records=dict(sorted(Counter(str(record.split) for record in records).items())),
        keys=keys,
        rejected=rejected,
    )
    write_json(shard.with_suffix(".json"), report.model_dump(mode="json", exclude_none=True))
    return report


def _finished(shard: Path, input_sha256: str) -> ShardReport | None:
    path = shard.with_suffix(".json")
    if not path.exists():
        return None
    report = parse_contract(
        ShardReport, path.read_bytes(), where=str(path), remedy="Remove it and resume."
    )
    if report.input_sha256 != input_sha256:
        raise BindingMismatch(
            f"{shard} was compiled from other documents.",
            [("documents", report.input_sha256[:16], input_sha256[:16])],
            "The input changed since the compile began. Restore it, or choose another --out.",
            sides=("shard", "input"),
        )
    if not shard.exists() or sha256_file(shard) != report.sha256:
        return None
    return report


class _Totals:
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


class _Seen:
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


def is_corpus(path: Path) -> bool:
    """Is this a compiled directory?"""
    return (path / BINDING).is_file()
