"""Shards one after another, or several at a time in processes; the bytes are the same.

Paper: §4.3.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from pdt.config import PdtConfig
from pdt.contract import parse_contract
from pdt.errors import BindingMismatch
from pdt.jobs import run_jobs
from pdt.provenance import sha256_file, write_json
from pdt.records.compile import Compiler
from pdt.records.inputs import DocumentLine, lines_digest, read_lines
from pdt.records.report import ShardReport
from pdt.records.schema import TrainingRecord
from pdt.records.shards import write_shard
from pdt.teacher.checks import CheckFailure


def shard_reports(
    files: Sequence[Path], out: Path, config: PdtConfig, compiler: Compiler, workers: int
) -> Iterator[ShardReport]:
    """Every shard's report in order; a worker has one shard in memory."""
    tasks = enumerate(_chunks(read_lines(files), config.records.shard_records))
    if workers == 1:
        return (compile_shard(compiler, index, lines, out) for index, lines in tasks)
    return run_jobs(
        partial(_in_worker, config, out),
        tasks,
        workers=workers,
        doing="compiled a shard",
        remedy="Every whole shard is kept. Run again with --resume and fewer --workers.",
    )


def _in_worker(
    config: PdtConfig, out: Path
) -> Callable[[tuple[int, Sequence[DocumentLine]]], ShardReport]:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    compiler = Compiler.load(config)
    return lambda task: compile_shard(compiler, *task, out)


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
