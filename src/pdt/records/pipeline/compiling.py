"""The third phase: taught documents to the shards of `pdt record compile`, the same bytes.

On one machine `compile_corpus` does it all; on a cluster each task makes shards of its own, and
`compile_corpus` afterwards finds them whole and closes the corpus.

Paper: §4.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from pdt.errors import ContractBroken
from pdt.records.compile import Compiler
from pdt.records.inputs import DocumentLine, lines_digest, read_lines
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport, part_file, part_name
from pdt.records.report import ShardReport
from pdt.records.work import compile_shard


def document_parts(build: Build) -> list[Path]:
    """The files of taught documents that hold any, in order."""
    files = [part_file(build.taught_out, index, "documents") for index in range(build.parts)]
    files = [file for file in files if file.stat().st_size]
    if not files:
        raise ContractBroken(
            f"No source of {build.bundles} was accepted and taught.",
            f"{build.out / 'rejected.jsonl'} gives every reason.",
        )
    return files


@dataclass(frozen=True)
class CompilingPhase:
    """Documents to shards, one part a shard."""

    build: Build
    name: str = "compiling"

    @cached_property
    def _lines_of_file(self) -> Sequence[tuple[Path, int]]:
        return [(file, sum(1 for _ in file.open("rb"))) for file in document_parts(self.build)]

    @property
    def parts(self) -> int:
        total = sum(count for _, count in self._lines_of_file)
        return -(-total // self.build.part_size)

    def report(self, index: int) -> PartReport | None:
        return None  # `compile_shard` itself keeps a shard that is whole

    def run(self, index: int) -> PartReport:
        self.build.records_out.mkdir(parents=True, exist_ok=True)
        lines = tuple(self._lines(index))
        report: ShardReport = compile_shard(self._compiler, index, lines, self.build.records_out)
        return PartReport(
            input_sha256=lines_digest(lines),
            files={f"{part_name(index)}": report.sha256},
            counts={"records": sum(report.records.values())},
        )

    def _lines(self, index: int) -> Iterator[DocumentLine]:
        first, size = index * self.build.part_size, self.build.part_size
        files, before = [], 0
        for file, count in self._lines_of_file:
            if before + count > first and before < first + size:
                files.append((file, before))
            before += count
        skip = first - files[0][1]
        yield from islice(read_lines([file for file, _ in files]), skip, skip + size)

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler.load(self.build.config)
