"""A phase of a build is a number of parts; a part is whole on disk, or it is done again.

`part-00000.*.jsonl` are written first, `part-00000.json`, which names them and their digests, last.
A part depends on nothing but the build and its own input, so any process may do any part, in any
order, with the same bytes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from pydantic import Field

from pdt.contract import Contract, Sha256, parse_contract
from pdt.jobs import run_jobs
from pdt.provenance import atomic_path, sha256_file, write_json


class PartReport(Contract):
    """What became of one part."""

    input_sha256: Sha256
    """What the part was made from."""
    files: dict[str, Sha256]
    """The part's files by name."""
    counts: dict[str, float] = Field(default_factory=dict)
    """How many, by kind; costs and tokens too."""


class BuildPhase(Protocol):
    """One step of a build, over all its parts."""

    @property
    def name(self) -> str: ...

    @property
    def parts(self) -> int: ...

    def report(self, index: int) -> PartReport | None:
        """The part's report if it is whole, else None."""
        ...

    def run(self, index: int) -> PartReport:
        """Do the part and write it."""
        ...


def part_name(index: int) -> str:
    return f"part-{index:05d}"


def write_part(
    directory: Path,
    index: int,
    lines: Mapping[str, Sequence[str]],
    *,
    input_sha256: str,
    counts: Mapping[str, float],
) -> PartReport:
    """The files of a part, and then the report that makes it whole."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {}
    for kind, texts in lines.items():
        path = part_file(directory, index, kind)
        with atomic_path(path) as partial:
            partial.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        files[path.name] = sha256_file(path)
    report = PartReport(input_sha256=input_sha256, files=files, counts=dict(counts))
    write_json(directory / f"{part_name(index)}.json", report.model_dump(mode="json"))
    return report


def read_part(directory: Path, index: int, *, input_sha256: str) -> PartReport | None:
    """The report of a part that is whole and was made from this input."""
    path = directory / f"{part_name(index)}.json"
    if not path.exists():
        return None
    report = parse_contract(
        PartReport, path.read_bytes(), where=str(path), remedy="Remove it and resume."
    )
    whole = all(
        (directory / name).is_file() and sha256_file(directory / name) == digest
        for name, digest in report.files.items()
    )
    return report if whole and report.input_sha256 == input_sha256 else None


def part_file(directory: Path, index: int, kind: str) -> Path:
    return directory / f"{part_name(index)}.{kind}.jsonl"


def part_lines(directory: Path, index: int, kind: str) -> Iterator[str]:
    with part_file(directory, index, kind).open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def run_parts(
    phase: BuildPhase, workers: int, progress: Callable[[PartReport], None] = lambda report: None
) -> list[PartReport]:
    """Every part of a phase, in one process or several; those that are whole are kept."""
    reports = {index: phase.report(index) for index in range(phase.parts)}
    for report in reports.values():
        if report is not None:
            progress(report)
    todo = [index for index, report in reports.items() if report is None]
    if workers == 1 or len(todo) < 2:
        for index in todo:
            reports[index] = report = phase.run(index)
            progress(report)
    else:
        done = run_jobs(
            partial(_runner, phase),
            todo,
            workers=workers,
            doing=f"worked on the {phase.name} phase",
            remedy="Every whole part is kept. Run again with --resume and fewer --workers.",
            progress=lambda _, report: progress(report),
        )
        reports.update(zip(todo, done, strict=True))
    return [report for report in reports.values() if report is not None]


def _runner(phase: BuildPhase) -> Callable[[int], PartReport]:
    return phase.run
