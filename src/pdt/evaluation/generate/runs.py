"""Every condition over every held-out document: texts, likelihoods and what an answer costs.

Paper: §7, Table 3.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import torch

from pdt.evaluation.generate.altered import altered_pairs
from pdt.evaluation.generate.batches import (
    HeldOutBatch,
    Pair,
    batch_borders,
    batch_of,
    held_out_pairs,
)
from pdt.evaluation.generate.checkpoints import check_matched
from pdt.evaluation.generate.latency import measure_execution, measure_memory
from pdt.evaluation.generate.parts import Parts
from pdt.evaluation.generate.plans import (
    AddressedPlans,
    given_plans,
    learned_plans,
    plans_where_told,
    read_batch,
)
from pdt.evaluation.generate.score import Scorer
from pdt.evaluation.generate.write import draw_words, write_batch
from pdt.evaluation.lines.altered import Altered
from pdt.evaluation.lines.document import HeldOutDocument, with_coined
from pdt.evaluation.lines.execution import Execution, ExecutionRun, SideMemory
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.protocol.conditions import Condition, Weights, Which
from pdt.evaluation.protocol.scope import scope_of, timed_documents
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.generation.ledger import peak_memory
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.prompt import Prompt
from pdt.records.batch import RecordShards
from pdt.records.compile import Compiler
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
    checkpoint: Path | None = None
    """Where the bus model lies, for processes of their own."""

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
    def pairs(self) -> list[Pair]:
        """Every document that is judged, with its row."""
        return held_out_pairs(self.shards, self.tokenizer, documents=self.settings.documents)

    @property
    def documents(self) -> list[HeldOutDocument]:
        return [document for document, _ in self.pairs]

    @cached_property
    def compiler(self) -> Compiler:
        """As the corpus was compiled, for documents that a condition alters."""
        return Compiler.load(self.shards.config)

    @cached_property
    def jobs(self) -> list[Job]:
        """Texts and likelihoods, then altered documents, then words drawn for their owners."""
        scope = self.scope
        plain = [c for c in scope.written if c.alters is None]
        jobs = []
        for which in dict.fromkeys(c.which for c in (*plain, *scope.scored)):
            written, scored = (
                tuple(c for c in conditions if c.which == which)
                for conditions in (plain, scope.scored)
            )
            for name, pairs in self._slices(which.name, which):
                measure = partial(self._measure, pairs, written, scored)
                jobs.append(Job(name, measure, len(pairs) * (len(written) + len(scored))))
        for condition in scope.written:
            if condition.alters is not None:
                for name, pairs in self._slices(f"altered-{condition.name}", condition.which):
                    jobs.append(Job(name, partial(self._alter, pairs, condition), len(pairs)))
        for which in dict.fromkeys(c.which for c in scope.coined):
            coined = tuple(c for c in scope.coined if c.which == which)
            for name, pairs in self._slices(f"coined-{which.name}", which, coined=True):
                measure = partial(self._coin, pairs, coined)
                jobs.append(Job(name, measure, len(pairs) * len(coined)))
        return jobs

    def _slices(
        self, name: str, which: Which, *, coined: bool = False
    ) -> Iterator[tuple[str, list[Pair]]]:
        """The documents of a choice in parts that are written side by side."""
        documents = with_coined(self.documents) if coined else self.documents
        chosen = {d.record_id for d in which.of(documents, few=self.settings.few_documents)}
        pairs = [pair for pair in self.pairs if pair[0].record_id in chosen]
        borders = batch_borders(len(pairs), self.settings.batch) if pairs else []
        for number, (start, end) in enumerate(pairwise(borders)):
            yield f"{name}-{number:04d}", pairs[start:end]

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
        raw = Raw(documents=self.documents)
        for part in found:
            raw.altered += part.altered
            raw.written += part.written
            raw.likelihoods += part.likelihoods
            raw.coined += part.coined
        ledgers = [(len(p.written), p.execution) for p in found if p.execution]
        seconds = sum(written / ledger.documents_per_second for written, ledger in ledgers)
        raw.execution = Execution(
            runs=tuple(self._time(timed_documents(raw))),
            memory=self._remember(),
            peak_memory_bytes=max([peak_memory(), *(e.peak_memory_bytes for _, e in ledgers)]),
            documents_per_second=len(raw.written) / seconds,
        )
        return raw

    def _measure(
        self, pairs: Sequence[Pair], written: Sequence[Condition], scored: Sequence[Condition]
    ) -> Raw:
        """Free generation and teacher forcing under these conditions."""
        raw, batch = Raw(), batch_of(pairs)
        prepared = self._prepare(batch)
        begun = time.perf_counter()
        for condition in written:
            raw.written += self._write(batch, condition, prepared)
        seconds = time.perf_counter() - begun
        scorers = {
            weights: Scorer(self.models[weights], batch, ready.plans, ready.read)
            for weights, ready in prepared.items()
        }
        for condition in scored:
            label = f"likelihood, {condition.title}"
            self.watch(label, 0)
            raw.likelihoods += scorers[condition.weights].score(condition)
            self.watch(label, len(batch.documents))
        if written:
            raw.execution = Execution(
                runs=(),
                peak_memory_bytes=peak_memory(),
                documents_per_second=len(raw.written) / seconds,
            )
        return raw

    def _alter(self, pairs: Sequence[Pair], condition: Condition) -> Raw:
        """Free generation on what the condition makes of these documents."""
        assert condition.alters is not None
        longest = self.models[Weights.BUS].config.planner.max_prompt_tokens
        altered = altered_pairs(pairs, condition.alters, self.compiler, longest=longest)
        if not altered:
            self.watch(f"writing, {condition.title}", len(pairs))
            return Raw()
        batch = batch_of(altered)
        return Raw(
            altered=[Altered(condition=condition.name, document=d) for d in batch.documents],
            written=self._write(batch, condition, self._prepare(batch)),
        )

    def _coin(self, pairs: Sequence[Pair], conditions: Sequence[Condition]) -> Raw:
        """Free generation in which owners coin the words that were drawn for them."""
        raw, batch = Raw(), batch_of(pairs)
        prepared = self._prepare(batch)
        words = draw_words(batch.documents, self.settings.seed)
        for condition in conditions:
            raw.coined += self._write(batch, condition, prepared, words)
        return raw

    def _prepare(self, batch: HeldOutBatch) -> dict[Weights, _Prepared]:
        """What every condition of a checkpoint shares: the prompts as read, and the plans."""
        prepared = {}
        for weights, model in self.models.items():
            read = read_batch(model, batch.records)
            plans = given_plans(model, batch.records, read)
            if self.settings.plan == "learned":
                told = torch.tensor([document.told for document in batch.documents])
                plans = plans_where_told(learned_plans(model, batch.records, read), plans, told)
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
        batch = batch_of(self.pairs[:count])
        model, given = self.models[Weights.BUS], None
        if self.settings.plan == "oracle":
            given = given_plans(model, batch.records, read_batch(model, batch.records)).plans
        return measure_execution(
            model,
            self.tokenizer,
            _prompts(batch),
            [None if given is None else given.document(place) for place in range(count)],
            [document.record_id for document in timed],
            self.writing,
            repeats=self.settings.repeats,
        )

    def _remember(self) -> tuple[SideMemory, ...]:
        if self.checkpoint is None:
            return ()
        self.watch("memory", 0)
        return measure_memory(self.checkpoint, _prompts(batch_of(self.pairs[:1]))[0], self.writing)


def _prompts(batch: HeldOutBatch) -> list[list[int]]:
    return [row[row >= 0].tolist() for row in batch.records.prompt_tokens_BS]
