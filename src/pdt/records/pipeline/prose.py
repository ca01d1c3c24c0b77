"""Data files to taught documents: in parts that are whole or not there, the same from any workers.

`part-00000.documents.jsonl` are written first and named last, as in every build; a killed run loses
the parts in flight. `manifest.json` names the data files with their licences and attributions.

Paper: §4.1, §4.2.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pdt.binding import bind
from pdt.config import PdtConfig
from pdt.errors import ContractBroken, UsageError
from pdt.extractive.data_files import DATA_FILES
from pdt.extractive.reading import READERS, read_texts
from pdt.extractive.sources import Library, split_of, without_doubles
from pdt.extractive.teacher import NAME, VERSION
from pdt.provenance import atomic_path, refuse_existing, sha256_json, write_manifest
from pdt.records.pipeline.parts import PartReport, part_file, read_part, run_parts, write_part
from pdt.records.pipeline.teachers import extractive
from pdt.teacher.interface import Taught, Teacher, TeachingSource, teach
from pdt.terms import Split, TeacherKind
from pdt.tokenizer import load_tokenizer

PART = 500
BINDING = "binding.json"
PARTS = "parts"
DOCUMENTS = "documents.jsonl"


@dataclass(frozen=True)
class ProseCorpus:
    """So many sources of one split, taught."""

    texts: Path
    out: Path
    config: PdtConfig
    split: Split
    count: int
    seed: int = 0
    name: str = "teaching"

    @property
    def parts(self) -> int:
        return -(-self.count // PART)

    def report(self, index: int) -> PartReport | None:
        return read_part(self.out / PARTS, index, input_sha256=self._input(index))

    def run(self, index: int) -> PartReport:
        documents, counts = [], Counter[str]()
        for number in self._numbers(index):
            source = self._source(number)
            taught = teach(self._teacher, source)
            if isinstance(taught, Taught):
                document = taught.value
                documents.append(document.model_dump_json())
                counts[f"division {document.teacher.settings['division']}"] += 1
                counts[f"kind {document.category}"] += 1
                counts["with house style"] += bool(document.answer.dependencies)
            else:
                counts["untaught"] += 1
        counts["documents"] = len(documents)
        return write_part(
            self.out / PARTS,
            index,
            {"documents": documents},
            input_sha256=self._input(index),
            counts=counts,
        )

    def _numbers(self, index: int) -> range:
        return range(index * PART, min((index + 1) * PART, self.count))

    def _input(self, index: int) -> str:
        numbers = self._numbers(index)
        return sha256_json([self.binding, numbers.start, numbers.stop])

    @cached_property
    def binding(self) -> dict[str, Any]:
        """What the documents follow from: equal bindings give equal bytes."""
        config = self.config
        files = [name for name in READERS if (self.texts / name).is_file()]
        return {
            "teacher": {
                "name": NAME,
                "version": VERSION,
                **config.teacher.extractive.model_dump(mode="json"),
            },
            "dossiers": config.sources.dossiers.model_dump(mode="json"),
            "splits": config.sources.splits.model_dump(mode="json"),
            "limits": config.records.limits.model_dump(mode="json"),
            "tokenizer": load_tokenizer(config.records.tokenizer).sha256,
            "files": {name: DATA_FILES[name].sha256 for name in files},
            "split": self.split.value,
            "seed": self.seed,
        }

    def _source(self, number: int) -> TeachingSource:
        try:
            return self._library.source(self.seed, number)
        except LookupError as error:
            raise ContractBroken(
                f"The texts of the {self.split} split do not make source {number}: {error}.",
                "Take more data files, or widen sources.dossiers and records.limits.",
            ) from error

    @cached_property
    def _library(self) -> Library:
        splits = self.config.sources.splits
        texts = [
            text
            for text in without_doubles(list(read_texts(self.texts)))
            if split_of(text.family, splits) is self.split
        ]
        return Library(
            tuple(texts),
            self.split,
            self.config.sources.dossiers,
            self.config.records.limits,
            load_tokenizer(self.config.records.tokenizer),
        )

    @cached_property
    def _teacher(self) -> Teacher:
        return extractive(self.config)


def write_corpus(
    corpus: ProseCorpus,
    *,
    workers: int = 1,
    resume: bool = False,
    progress: Callable[[PartReport], None] = lambda report: None,
) -> Counter[str]:
    """Every part, then one file of documents and the manifest; returns what was counted."""
    if corpus.config.teacher.kind is not TeacherKind.EXTRACTIVE:
        raise UsageError(
            f"teacher.kind is {corpus.config.teacher.kind}, and these texts are taught by the "
            "extractive teacher.\nChoose --preset digest, or --set teacher.kind=extractive."
        )
    if not resume:
        refuse_existing(corpus.out, else_="add --resume")
    binding = corpus.binding
    if not binding["files"]:
        raise UsageError(f"{corpus.texts} holds no data file.\nRun `pdt corpus take` first.")
    corpus.out.mkdir(parents=True, exist_ok=True)
    (corpus.out / PARTS).mkdir(exist_ok=True)
    bind(
        corpus.out / PARTS / BINDING,
        {**binding, "count": corpus.count},
        f"{corpus.out} was started with other texts or settings.",
        "A corpus has one set of texts and dials. Choose another --out.",
    )
    counts: Counter[str] = Counter()
    reports = run_parts(corpus, workers, progress)
    for report in reports:
        counts.update({name: int(count) for name, count in report.counts.items()})
    with atomic_path(corpus.out / DOCUMENTS) as partial, partial.open("wb") as whole:
        for index in range(corpus.parts):
            with part_file(corpus.out / PARTS, index, "documents").open("rb") as part:
                shutil.copyfileobj(part, whole)
    write_manifest(
        corpus.out,
        made_by="pdt corpus write",
        config={"count": corpus.count, **binding},
        inputs={
            name: DATA_FILES[name].model_dump(mode="json", exclude={"name"})
            for name in binding["files"]
        },
    )
    return counts
