"""Shards one after another, or several at a time in processes; the bytes are the same.

Paper: §4.3.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path

from pdt.config import PdtConfig
from pdt.contract import parse_contract
from pdt.errors import BindingMismatch, PdtError
from pdt.provenance import sha256_file, write_json
from pdt.records.compile import Compiler
from pdt.records.inputs import DocumentLine, lines_digest, read_lines
from pdt.records.report import ShardReport
from pdt.records.schema import TrainingRecord
from pdt.records.shards import write_shard
from pdt.teacher.checks import CheckFailure

_Outcome = ShardReport | tuple[type[PdtError], str]
"""A worker's report, or its refusal as values: not every error survives being pickled."""

_worker: Compiler | None = None
"""The compiler of this worker process."""


def shard_reports(
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
            raise refusal(*outcome)


def _start_worker(config: PdtConfig) -> None:
    global _worker
    end_with_parent()
    _worker = Compiler.load(config)


def end_with_parent() -> None:
    """A killed command leaves no process behind that could write beside its successor."""
    parent = parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _in_worker(index: int, lines: Sequence[DocumentLine], out: Path) -> _Outcome:
    assert _worker is not None
    try:
        return compile_shard(_worker, index, lines, out)
    except PdtError as error:
        return type(error), str(error)


def refusal(kind: type[PdtError], message: str) -> PdtError:
    """The worker's refusal again; its constructor may want more than the message."""
    error = kind.__new__(kind)
    error.args = (message,)
    return error
