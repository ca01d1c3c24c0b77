"""The whole build: source gates, teaching, compiling; each phase keeps what is whole.

Paper: §4.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from pydantic import Field

from pdt.contract import Contract, Line
from pdt.errors import UsageError
from pdt.provenance import atomic_path, write_json, write_manifest
from pdt.records.corpus import compile_corpus
from pdt.records.inputs import input_digests
from pdt.records.pipeline.batches import teach_in_batches
from pdt.records.pipeline.compiling import document_parts
from pdt.records.pipeline.gating import SourcesPhase
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport, part_lines, run_parts
from pdt.records.pipeline.teaching import TeachingPhase, UntaughtSource
from pdt.records.report import CorpusReport
from pdt.sources.verdict import RejectedSource

REPORT, REJECTED = "report.json", "rejected.jsonl"


Step = Literal["source_gates", "extract_facts", "compose_answer", "compile"]


class Rejection(Contract):
    """A line of rejected.jsonl: what was left out, at which step, and every reason."""

    step: Step
    """Where it ended."""
    id: Line
    """The record, or the bundle when there was none yet."""
    title: Line
    """The article's title, as far as known."""
    reasons: tuple[str, ...]
    """All of them."""


class BuildReport(Contract):
    """What became of every bundle."""

    schema_version: Literal["pdt.build/1"] = "pdt.build/1"
    """The version of this contract."""
    bundles: int
    """Bundles read."""
    accepted: int
    """Sources that passed every gate of Table 1."""
    taught: int
    """Documents that the teacher made of them."""
    records: dict[str, int]
    """Records by split."""
    rejected: dict[str, int]
    """What was left out, by step."""
    reasons: dict[str, int]
    """Rejected sources by reason; one may have several."""
    calls: int = 0
    """Replies of the teacher, repairs included."""
    input_tokens: int = 0
    """Tokens sent."""
    output_tokens: int = 0
    """Tokens received."""
    cost: float = Field(default=0.0, ge=0)
    """What the replies cost."""


Progress = Callable[[str, int, int], None]
"""The phase, how many of its items are done, and how many there are (0 when not known)."""


def build_corpus(
    build: Build,
    *,
    workers: int = 1,
    batch: bool = False,
    progress: Progress = lambda phase, done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> BuildReport:
    """Every phase of an opened build; the result does not depend on `workers`."""
    sources = gate_sources(build, workers, progress)
    accepted = int(sum(report.counts["accepted"] for report in sources))
    counting = _counting(progress, "teaching", "taught", accepted)
    if batch:
        taught = teach_in_batches(build, counting, say)
    else:
        taught = run_parts(TeachingPhase(build), workers, counting)
    _write_rejected(build, None)
    files = document_parts(build)
    done = 0

    def compiled(count: int) -> None:
        nonlocal done
        done += count
        progress("compiling", done, sum(int(report.counts["taught"]) for report in taught))

    corpus = compile_corpus(
        files,
        build.records_out,
        build.config,
        workers=workers,
        resume=True,
        progress=lambda report: compiled(report.documents),
    )
    return _close(build, sources, taught, corpus)


def gate_sources(build: Build, workers: int, progress: Progress) -> Sequence[PartReport]:
    """The first phase alone."""
    counting = _counting(progress, "source gates", "bundles", len(build.bundle_names))
    return run_parts(SourcesPhase(build), workers, counting)


def _counting(
    progress: Progress, phase: str, kind: str, total: int
) -> Callable[[PartReport], None]:
    done = 0

    def count(report: PartReport) -> None:
        nonlocal done
        done += int(report.counts.get(kind, 0))
        progress(phase, done, total)

    return count


def _close(
    build: Build,
    sources: Sequence[PartReport],
    taught: Sequence[PartReport],
    corpus: CorpusReport,
) -> BuildReport:
    rejections = list(_write_rejected(build, corpus))
    sums: Counter[str] = Counter()
    for part in (*sources, *taught):
        sums.update(part.counts)
    report = BuildReport(
        bundles=int(sums["bundles"]),
        accepted=int(sums["accepted"]),
        taught=int(sums["taught"]),
        records=corpus.records,
        rejected=dict(sorted(Counter(str(one.step) for one in rejections).items())),
        reasons=dict(
            sorted(Counter(reason for one in rejections for reason in _names(one)).items())
        ),
        calls=int(sums["calls"]),
        input_tokens=int(sums["input tokens"]),
        output_tokens=int(sums["output tokens"]),
        cost=round(float(sums["cost"]), 9),
    )
    write_json(build.out / REPORT, report.model_dump(mode="json"))
    write_manifest(
        build.out,
        made_by="pdt corpus build",
        config=build.config.model_dump(mode="json"),
        inputs=input_digests([build.candidates]),
    )
    return report


def _names(rejection: Rejection) -> set[str]:
    """The requirement or rule at the head of each reason."""
    return {reason.partition(":")[0].partition(" ")[0] for reason in rejection.reasons}


def _write_rejected(build: Build, corpus: CorpusReport | None) -> list[Rejection]:
    found = list(_rejections(build, corpus))
    with atomic_path(build.out / REJECTED) as partial:
        partial.write_text(
            "".join(rejection.model_dump_json() + "\n" for rejection in found), encoding="utf-8"
        )
    return found


def _rejections(build: Build, corpus: CorpusReport | None) -> Iterator[Rejection]:
    for index in range(build.parts):
        for line in part_lines(build.sources_out, index, "rejected"):
            source = RejectedSource.model_validate_json(line)
            yield Rejection(
                step="source_gates",
                id=source.bundle_id,
                title=source.title,
                reasons=source.reasons,
            )
        for line in part_lines(build.taught_out, index, "rejected"):
            untaught = UntaughtSource.model_validate_json(line)
            yield Rejection(
                step=untaught.teacher_pass.value,
                id=untaught.record_id,
                title=untaught.title,
                reasons=tuple(str(failure) for failure in untaught.failures),
            )
    if corpus is not None and corpus.rejected:
        for shard in corpus.shards:
            report = (build.records_out / shard).with_suffix(".json").read_bytes()
            yield from _of_shard(report)


def _of_shard(data: bytes) -> Iterator[Rejection]:
    from pdt.records.report import ShardReport

    for record_id, failures in ShardReport.model_validate_json(data).rejected.items():
        reasons = tuple(str(failure) for failure in failures)
        yield Rejection(step="compile", id=record_id, title=record_id, reasons=reasons)


def refuse_batch(build: Build) -> None:
    if build.config.teacher.kind != "endpoint":
        raise UsageError(
            f"--batch needs teacher.kind=endpoint, not {build.config.teacher.kind}.\n"
            "Leave --batch out, or set the teacher."
        )
