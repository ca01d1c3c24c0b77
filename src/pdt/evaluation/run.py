"""One evaluation: every condition over every held-out document, then measures, gates and reports.

Paper: §7, Table 3.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from pdt.errors import BindingMismatch, UsageError
from pdt.evaluation.calibration import Calibration, check_disjoint
from pdt.evaluation.conditions import ORACLE, Condition, Weights
from pdt.evaluation.execution import Execution, ExecutionRun
from pdt.evaluation.generate import draw_words, write_batch
from pdt.evaluation.held_out import HeldOutBatch, coined_batches, held_out_batches
from pdt.evaluation.judgments import Judgment, Screen
from pdt.evaluation.latency import measure_execution, peak_memory
from pdt.evaluation.parts import Parts
from pdt.evaluation.plans import AddressedPlans, given_plans, learned_plans, read_batch
from pdt.evaluation.results import EvaluationSettings, Raw
from pdt.evaluation.scope import judged_by, scope_of, timed_documents
from pdt.evaluation.score import Scorer
from pdt.evaluation.written import Written
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder, Prompt
from pdt.model.planner import PlanSet
from pdt.model.store import check_binding
from pdt.records.batch import RecordShards
from pdt.terms import NotesCondition
from pdt.tokenizer import StudentTokenizer, load_tokenizer
from pdt.training.preflight import check_records

Progress = Callable[[str, int], None]
"""What is done now, and how many documents more are done with it."""
UNMATCHED = (
    "notes.condition", "notes.codebook_start", "trunk.source", "records.", "sources.", "teacher.",
    "cluster.", "training.watch.", "training.trunk_cache.", "training.recompute",
    "training.save_steps", "training.keep_checkpoints",
)  # fmt: skip
"""May differ between a bus checkpoint and its control: no plan path, objective or budget."""


@dataclass(frozen=True)
class _Job:
    """One batch of documents under all its conditions."""

    name: str
    measure: Callable[[], Raw]
    runs: int
    """Documents times conditions."""


@dataclass(frozen=True)
class _Prepared:
    """One batch under one checkpoint, before any condition."""

    read: Prompt
    plans: AddressedPlans


@dataclass
class Evaluation:
    """The models, the held-out documents and the screens of one evaluation."""

    shards: RecordShards
    models: Mapping[Weights, ParallelDecoder]
    settings: EvaluationSettings
    screens: Mapping[str, Screen]
    calibration: Calibration | None = None
    """Of the NLI screen; a document it has seen is not evaluated on."""
    parts: Parts | None = None
    """Where finished batches are kept until the end."""
    progress: Progress = lambda label, documents: None
    raw: Raw = field(default_factory=Raw)

    def __post_init__(self) -> None:
        self.tokenizer: StudentTokenizer = load_tokenizer(self.shards.config.records.tokenizer)
        self.shards.require_tokenizer(self.tokenizer.sha256)
        for model in self.models.values():
            check_records(model, self.shards)
            model.eval()
        if Weights.SELF_ONLY in self.models:
            check_matched(self.models[Weights.BUS], self.models[Weights.SELF_ONLY])
        self.scope = scope_of(self.settings, self.models)
        self.writing = GenerationSettings(max_tokens=self.settings.max_tokens)

    def steps(self, batches: Sequence[HeldOutBatch], coined: Sequence[HeldOutBatch]) -> int:
        """How many document runs there are, for a progress bar."""
        return sum(job.runs for job in self._jobs(batches, coined))

    def missing(
        self, batches: Sequence[HeldOutBatch], coined: Sequence[HeldOutBatch]
    ) -> dict[int, int]:
        """Which batches no part holds yet, each with its document runs."""
        jobs = enumerate(self._jobs(batches, coined))
        kept = self.parts
        return {n: job.runs for n, job in jobs if kept is None or kept.read(job.name) is None}

    def measure(
        self, number: int, batches: Sequence[HeldOutBatch], coined: Sequence[HeldOutBatch]
    ) -> None:
        """One batch, into its part."""
        self._part(self._jobs(batches, coined)[number])

    def _jobs(self, batches: Sequence[HeldOutBatch], coined: Sequence[HeldOutBatch]) -> list[_Job]:
        """Free generation and teacher forcing, then the words that were drawn for their owners."""
        conditions = len(self.scope.written) + len(self.scope.scored)
        return [
            _Job(f"{name}-{number:04d}", partial(measure, batch), runs * len(batch.documents))
            for name, measure, runs, all_batches in (
                ("batch", self._measure, conditions, batches),
                ("coined", self._coin, len(self.scope.coined), coined),
            )
            for number, batch in enumerate(all_batches)
        ]

    def batches(self) -> tuple[list[HeldOutBatch], list[HeldOutBatch]]:
        """All documents, and those in which something is coined."""
        size, count = self.settings.batch, self.settings.documents
        batches = held_out_batches(self.shards, self.tokenizer, documents=count, size=size)
        if self.calibration is not None:
            check_disjoint(self.calibration, [d for batch in batches for d in batch.documents])
        empty = [""] * self.models[Weights.BUS].config.lanes.count
        for screen in self.screens.values():
            for document in (d for batch in batches for d in batch.documents):
                screen.judge(document, empty)  # refuses now what it could not read hours later
        return batches, coined_batches(self.shards, self.tokenizer, documents=count, size=size)

    def run(self, batches: Sequence[HeldOutBatch], coined: Sequence[HeldOutBatch]) -> Raw:
        """Everything that is measured; a batch that was measured before is taken as it is."""
        found = [self._part(job) for job in self._jobs(batches, coined)]
        for part in found:
            self.raw.documents += part.documents
            self.raw.written += part.written
            self.raw.likelihoods += part.likelihoods
            self.raw.coined += part.coined
        self._judge()
        ledgers = [(len(p.written), p.execution) for p in found if p.execution]
        seconds = sum(written / ledger.documents_per_second for written, ledger in ledgers)
        self.raw.execution = Execution(
            runs=tuple(self._execution()),
            peak_memory_bytes=max([peak_memory(), *(e.peak_memory_bytes for _, e in ledgers)]),
            documents_per_second=len(self.raw.written) / seconds,
        )
        return self.raw

    def _part(self, job: _Job) -> Raw:
        if self.parts is None:
            return job.measure()
        raw = self.parts.read(job.name)
        if raw is not None:
            self.progress("measured before", job.runs)
            return raw
        raw = job.measure()
        self.parts.write(job.name, raw)
        return raw

    def _measure(self, batch: HeldOutBatch) -> Raw:
        """Free generation and teacher forcing under every condition."""
        raw = Raw(documents=list(batch.documents))
        prepared = self._prepare(batch)
        begun = time.perf_counter()
        for condition in self.scope.written:
            raw.written += self._write(batch, condition, prepared)
        seconds = time.perf_counter() - begun
        scorers = {
            weights: Scorer(self.models[weights], batch, ready.plans, ready.read)
            for weights, ready in prepared.items()
        }
        for condition in self.scope.scored:
            label = f"likelihood, {condition.title}"
            self.progress(label, 0)
            raw.likelihoods += scorers[condition.weights].score(condition)
            self.progress(label, len(batch.documents))
        raw.execution = Execution(
            runs=(),
            peak_memory_bytes=peak_memory(),
            documents_per_second=len(raw.written) / seconds,
        )
        return raw

    def _coin(self, batch: HeldOutBatch) -> Raw:
        """Free generation in which owners coin the words that were drawn for them."""
        raw = Raw()
        prepared = self._prepare(batch)
        words = draw_words(batch.documents, self.settings.seed)
        for condition in self.scope.coined:
            raw.coined += self._write(batch, condition, prepared, words)
        return raw

    def _prepare(self, batch: HeldOutBatch) -> dict[Weights, _Prepared]:
        """What every condition of a checkpoint shares: the prompts as read, and the plans."""
        prepared = {}
        for weights, model in self.models.items():
            read = read_batch(model, batch.records)
            if self.settings.plan == "oracle":
                plans = given_plans(batch.records)
            else:
                plans = learned_plans(model, batch.records, read)
            prepared[weights] = _Prepared(read, plans)
        return prepared

    def _write(
        self,
        batch: HeldOutBatch,
        condition: Condition,
        prepared: Mapping[Weights, _Prepared],
        words: Sequence[dict[str, str]] | None = None,
    ) -> list[Written]:
        label = f"{'writing' if words is None else 'coined words'}, {condition.title}"
        self.progress(label, 0)
        ready = prepared[condition.weights]
        written, _ = write_batch(
            self.models[condition.weights],
            self.tokenizer,
            batch,
            condition,
            given_plans(batch.records) if condition is ORACLE else ready.plans,
            self.writing,
            read=ready.read,
            words=words,
        )
        self.progress(label, len(batch.documents))
        return written

    def _judge(self) -> None:
        documents = {document.record_id: document for document in self.raw.documents}
        for name, screen in self.screens.items():
            for written in judged_by(name, self.settings, self.raw):
                judged = screen.judge(
                    documents[written.record_id], [lane.text for lane in written.lanes]
                )
                self.raw.judgments.append(
                    Judgment(
                        screen=name,
                        condition=written.condition,
                        record_id=written.record_id,
                        judged=judged,
                    )
                )
                self.progress(f"judging, {name}", 0)

    def _execution(self) -> list[ExecutionRun]:
        self.progress("latency", 0)
        timed = timed_documents(self.raw)
        count = len(timed)
        (batch,) = held_out_batches(self.shards, self.tokenizer, documents=count, size=count)
        addressed = self._prepare(batch)[Weights.BUS].plans.plans
        prompts = [row[row >= 0].tolist() for row in batch.records.prompt_tokens_BS]
        return measure_execution(
            self.models[Weights.BUS],
            self.tokenizer,
            prompts,
            [_one(addressed, place) for place in range(count)],
            [document.record_id for document in timed],
            self.writing,
        )


def _one(plans: PlanSet, document: int) -> PlanSet:
    row = slice(document, document + 1)
    return PlanSet(plans.nodes_BKNP[row], plans.valid_BKN[row], plans.scores_BK[row])


def load_for_evaluation(path: Path, condition: NotesCondition) -> tuple[ParallelDecoder, str]:
    """A model directory or a checkpoint of a run, and the digest that names it."""
    from pdt.model.kernels.matmul import use_best_way
    from pdt.model.store import load_model, model_directory
    from pdt.provenance import MANIFEST, sha256_file

    directory = model_directory(path)
    if not directory.is_dir():
        raise UsageError(f"{path} is not a directory. Give a saved model or a checkpoint.")
    model = load_model(directory)
    use_best_way(model.device)
    if model.config.notes.condition is not condition:
        raise BindingMismatch(
            f"{directory} was trained under another notes condition.",
            [("notes.condition", model.config.notes.condition, condition)],
            "--model takes the bus checkpoint, --self-only the self-only one (§7.1).",
            sides=("checkpoint", "expected"),
        )
    return model, sha256_file(directory / MANIFEST)


def check_matched(bus: ParallelDecoder, self_only: ParallelDecoder) -> None:
    """The control has the same parameters, path and budget; only what a lane may read differs."""
    check_binding(self_only.config, bus.config, Path("the self-only checkpoint"), free=UNMATCHED)
    ours, theirs = (
        {name: tuple(p.shape) for name, p in m.named_parameters()} for m in (bus, self_only)
    )
    assert ours == theirs
    same = all(
        torch.equal(a, b)
        for (_, a), (_, b) in zip(bus.trunk.shared(), self_only.trunk.shared(), strict=True)
    )
    if not same:
        raise BindingMismatch(
            "The self-only checkpoint stands on another trunk.",
            [("trunk", "other weights", "the bus checkpoint's")],
            "Train both from one trunk; else the comparison is of trunks.",
            sides=("self-only", "bus"),
        )
