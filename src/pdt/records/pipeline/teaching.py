"""The second phase: each accepted source is taught, checked, and becomes a document or a rejection.

Paper: §4.2.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from pdt.contract import Contract, Id, Line, parse_contract
from pdt.provenance import sha256_file
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport, part_file, part_lines, read_part, write_part
from pdt.records.pipeline.teachers import open_teacher, record_id_of
from pdt.sources.verdict import AcceptedSource
from pdt.teacher.call import NotAnswered
from pdt.teacher.checks import CheckFailure
from pdt.teacher.interface import Attempt, Taught, Teacher, TeachingSource, Untaught, teach
from pdt.terms import TeacherKind, TeacherPass


class UntaughtSource(Contract):
    """A line of taught/part-*.rejected.jsonl: a source that no attempt could teach."""

    schema_version: Literal["pdt.untaught_source/1"] = "pdt.untaught_source/1"
    """The version of this contract."""
    record_id: Id
    """The id that the record would have had."""
    title: Line
    """The article's title."""
    teacher_pass: TeacherPass
    """Where it failed."""
    failures: tuple[CheckFailure, ...]
    """Every rule that the last attempt broke."""
    attempts: tuple[Attempt, ...] = Field(default_factory=tuple)
    """Every attempt, with what it cost."""


@dataclass(frozen=True)
class TeachingPhase:
    """Accepted sources to taught documents."""

    build: Build
    name: str = "teaching"

    @property
    def parts(self) -> int:
        return self.build.parts

    def report(self, index: int) -> PartReport | None:
        return read_part(self.build.taught_out, index, input_sha256=self._input(index))

    def run(self, index: int) -> PartReport:
        report = self.run_with(self._teacher, index)
        assert report is not None
        return report

    def sources_in(self, index: int) -> int:
        return len(self._lines(index))

    def run_with(self, teacher: Teacher, index: int, *, wait: bool = False) -> PartReport | None:
        """Teach a part; with `wait`, None when some call is not answered yet."""
        sources = [self._source(line) for line in self._lines(index)]

        def one(source: TeachingSource) -> Any:
            try:
                return teach(teacher, source)
            except NotAnswered:
                if wait:
                    return None
                raise

        threads = self._threads
        if threads == 1:
            results = [one(source) for source in sources]
        else:
            with ThreadPoolExecutor(threads) as pool:
                futures = [pool.submit(one, source) for source in sources]
                try:
                    results = [future.result() for future in futures]
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise
        if any(result is None for result in results):
            return None
        return self._write(index, sources, results)

    def _write(self, index: int, sources: list[TeachingSource], results: list[Any]) -> PartReport:
        documents, rejected, attempts = [], [], []
        counts: Counter[str] = Counter({"taught": 0, "rejected by the teacher's checks": 0})
        for source, result in zip(sources, results, strict=True):
            attempts += [_line(source, attempt) for attempt in result.attempts]
            for attempt in result.attempts:
                counts["calls"] += 1
                counts["input tokens"] += attempt.input_tokens
                counts["output tokens"] += attempt.output_tokens
                counts["cost"] += attempt.cost
            if isinstance(result, Taught):
                counts["taught"] += 1
                documents.append(result.value.model_dump_json())
            else:
                counts["rejected by the teacher's checks"] += 1
                rejected.append(_rejected(source, result).model_dump_json())
        return write_part(
            self.build.taught_out,
            index,
            {"documents": documents, "rejected": rejected, "attempts": attempts},
            input_sha256=self._input(index),
            counts=counts,
        )

    def _source(self, line: str) -> TeachingSource:
        accepted = parse_contract(AcceptedSource, line, where=str(self.build.sources_out))
        return TeachingSource(
            record_id=record_id_of(self.build, accepted),
            split=accepted.split,
            family_key=accepted.family_key,
            category=accepted.candidate.category,
            article=accepted.article,
        )

    def _lines(self, index: int) -> list[str]:
        return list(part_lines(self.build.sources_out, index, "accepted"))

    def _input(self, index: int) -> str:
        return sha256_file(part_file(self.build.sources_out, index, "accepted"))

    @property
    def _threads(self) -> int:
        teacher = self.build.config.teacher
        return teacher.endpoint.concurrency if teacher.kind is TeacherKind.ENDPOINT else 1

    @cached_property
    def _teacher(self) -> Teacher:
        return open_teacher(self.build)


def _line(source: TeachingSource, attempt: Attempt) -> str:
    return f'{{"record_id":"{source.record_id}","attempt":{attempt.model_dump_json()}}}'


def _rejected(source: TeachingSource, result: Untaught) -> UntaughtSource:
    return UntaughtSource(
        record_id=source.record_id,
        title=source.article.title,
        teacher_pass=result.teacher_pass,
        failures=result.failures,
        attempts=result.attempts,
    )
