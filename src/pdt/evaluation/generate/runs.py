"""Every condition over every held-out document: texts, likelihoods and what an answer costs.

Paper: §7, Table 3.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from pdt.evaluation.generate.batches import HeldOutBatch, coined_batches, held_out_batches
from pdt.evaluation.generate.checkpoints import check_matched
from pdt.evaluation.generate.latency import measure_execution, peak_memory
from pdt.evaluation.generate.parts import Parts
from pdt.evaluation.generate.plans import AddressedPlans, given_plans, learned_plans, read_batch
from pdt.evaluation.generate.score import Scorer
from pdt.evaluation.generate.write import draw_words, write_batch
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.execution import Execution, ExecutionRun
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.protocol.conditions import Condition, Weights
from pdt.evaluation.protocol.scope import scope_of, timed_documents
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder, Prompt
from pdt.model.planner import PlanSet
from pdt.records.batch import RecordShards
from pdt.records.fit import check_fit
from pdt.tokenizer import StudentTokenizer, load_tokenizer

Watch = Callable[[str, int], None]
"""Hears what is being done, and how many document runs more are done with it."""


@dataclass(frozen=True)
class Job:
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
class Runs:
    """The models and the held-out documents of one evaluation."""

    shards: RecordShards
    models: Mapping[Weights, ParallelDecoder]
    settings: EvaluationSettings
    parts: Parts | None = None
    """Where finished batches are kept until the end."""
    watch: Watch = lambda label, runs: None

    def __post_init__(self) -> None:
        self.tokenizer: StudentTokenizer = load_tokenizer(self.shards.config.records.tokenizer)
        self.shards.require_tokenizer(self.tokenizer.sha256)
        for model in self.models.values():
            check_fit(self.shards, model.config, model.tokenizer)
            model.eval()
        if Weights.SELF_ONLY in self.models:
            check_matched(self.models[Weights.BUS], self.models[Weights.SELF_ONLY])
        self.scope = scope_of(self.settings, self.models)
        self.writing = GenerationSettings(max_tokens=self.settings.max_tokens)

    @cached_property
    def batches(self) -> list[HeldOutBatch]:
        return self._batched(held_out_batches)

    @cached_property
    def coined(self) -> list[HeldOutBatch]:
        """Batches of the documents in which something is coined."""
        return self._batched(coined_batches)

    @property
    def documents(self) -> list[HeldOutDocument]:
        return [document for batch in self.batches for document in batch.documents]

    @cached_property
    def jobs(self) -> list[Job]:
        """Free generation and teacher forcing, then the words that were drawn for their owners."""
        conditions = len(self.scope.written) + len(self.scope.scored)
        return [
            Job(f"{name}-{number:04d}", partial(measure, batch), runs * len(batch.documents))
            for name, measure, runs, batches in (
                ("batch", self._measure, conditions, self.batches),
                ("coined", self._coin, len(self.scope.coined), self.coined),
            )
            for number, batch in enumerate(batches)
        ]

    def missing(self) -> dict[int, Job]:
        """The jobs, by number, that no part holds yet."""
        kept = self.parts
        jobs = enumerate(self.jobs)
        return {n: job for n, job in jobs if kept is None or kept.read(job.name) is None}

    def measure(self, number: int) -> Raw:
        """One job, into its part; one that was measured before is taken as it is."""
        job = self.jobs[number]
        if self.parts is None:
            return job.measure()
        raw = self.parts.read(job.name)
        if raw is not None:
            self.watch("measured before", job.runs)
            return raw
        raw = job.measure()
        self.parts.write(job.name, raw)
        return raw

    def measure_all(self) -> Raw:
        """Everything that needs a model, in the order of the documents."""
        found = [self.measure(number) for number in range(len(self.jobs))]
        raw = Raw()
        for part in found:
            raw.documents += part.documents
            raw.written += part.written
            raw.likelihoods += part.likelihoods
            raw.coined += part.coined
        ledgers = [(len(p.written), p.execution) for p in found if p.execution]
        seconds = sum(written / ledger.documents_per_second for written, ledger in ledgers)
        raw.execution = Execution(
            runs=tuple(self._time(timed_documents(raw))),
            peak_memory_bytes=max([peak_memory(), *(e.peak_memory_bytes for _, e in ledgers)]),
            documents_per_second=len(raw.written) / seconds,
        )
        return raw

    def _batched(self, cut: Callable[..., list[HeldOutBatch]]) -> list[HeldOutBatch]:
        count, size = self.settings.documents, self.settings.batch
        return cut(self.shards, self.tokenizer, documents=count, size=size)

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
            self.watch(label, 0)
            raw.likelihoods += scorers[condition.weights].score(condition)
            self.watch(label, len(batch.documents))
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
                plans = given_plans(model, batch.records, read)
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
        self.watch(label, 0)
        ready, model = prepared[condition.weights], self.models[condition.weights]
        oracle = given_plans(model, batch.records, ready.read) if condition.oracle else None
        written, _ = write_batch(
            model,
            self.tokenizer,
            batch,
            condition,
            oracle or ready.plans,
            self.writing,
            read=ready.read,
            words=words,
        )
        self.watch(label, len(batch.documents))
        return written

    def _time(self, timed: Sequence[HeldOutDocument]) -> list[ExecutionRun]:
        self.watch("latency", 0)
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
