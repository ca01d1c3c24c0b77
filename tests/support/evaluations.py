"""A small held-out Chronicle corpus and tiny models for it, for tests of the evaluation."""

from functools import cache
from pathlib import Path

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import Meter
from pdt.config import PdtConfig, edit_config, load_config
from pdt.evaluation.generate.held_out import held_out
from pdt.evaluation.generate.runs import Runs
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.measures.longform import LongformLimits
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.evaluation.report.results import Results
from pdt.evaluation.report.write import conclude, write_report
from pdt.evaluation.screens.exact import ExactScreen
from pdt.evaluation.screens.judge import judge
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordShards
from pdt.records.corpus import compile_corpus
from pdt.teacher.document import TaughtDocument
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tests.conftest import open_model

Ran = tuple[Raw, Results, Path]
"""Raw lines, results, and the directory that holds both."""

SMALL = [
    "trunk.shape.layers=2",
    "trunk.shape.width=32",
    "trunk.shape.query_heads=2",
    "trunk.shape.kv_heads=2",
    "trunk.shape.head_width=16",
    "trunk.shape.feed_forward=32",
    "lanes.fork_layer=1",
    "planner.width=32",
    "planner.heads=2",
    "planner.feed_forward=32",
    "reads.memory_width=32",
    "reads.width=32",
    "reads.heads=2",
    "heads.width=32",
    "heads.fact_width=32",
]


def small_config(*overrides: str) -> PdtConfig:
    return load_config("nano", overrides=[*SMALL, *overrides])


@cache
def chronicle_documents(count: int, split: Split = Split.TEST) -> tuple[TaughtDocument, ...]:
    """Documents of which most coin a name."""
    tokenizer = load_tokenizer(load_config("nano").records.tokenizer)
    dials = turn_dials("nano", ["coined_share=0.75", "bits=[2]"])
    chronicle = Chronicle(7, split, dials, Meter(tokenizer))
    return tuple(document.taught for document in chronicle.documents(count))


def chronicle_shards(
    path: Path, count: int = 4, split: Split = Split.TEST
) -> tuple[RecordShards, PdtConfig]:
    config = small_config()
    lines = [d.model_dump_json() for d in chronicle_documents(count, split)]
    (path / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    compile_corpus([path / "documents.jsonl"], path / "records", config)
    return RecordShards(path / "records"), config


def held_out_pairs(shards: RecordShards) -> list[tuple[HeldOutDocument, TaughtDocument]]:
    tokenizer = load_tokenizer(shards.config.records.tokenizer)
    return [
        (held_out(row, tokenizer), TaughtDocument.model_validate_json(row["document"]))
        for shard in shards.shards
        for row in shard.rows()
    ]


def small_settings(config: PdtConfig, **changes: object) -> EvaluationSettings:
    values: dict[str, object] = {
        "documents": 4,
        "batch": 4,
        "max_tokens": 70,
        "longform": LongformLimits.of(config),
        "block_tokens": config.lanes.block_tokens,
        "window_blocks": config.notes.window_blocks,
        "resamples": 200,
    }
    return EvaluationSettings.model_validate(values | changes)


def small_models() -> dict[Weights, ParallelDecoder]:
    bus = open_model(small_config())
    control = random_model(small_config("notes.condition=self_only"))
    control.load_state_dict(bus.state_dict())
    return {Weights.BUS: bus, Weights.SELF_ONLY: control}


def judged_exactly(runs: Runs) -> Raw:
    """Everything that these runs measure, with the exact screen's judgments."""
    raw = runs.measure_all()
    raw.judgments += judge([ExactScreen()], raw, runs.settings)
    return raw


def write_small(out: Path, runs: Runs, raw: Raw) -> Results:
    """The result directory of runs that gave these lines, as `pdt eval run` writes it."""
    settings = runs.settings
    digests = {weights.value: str(n) * 64 for n, weights in enumerate(runs.models)}
    lengths = {"min": settings.longform.tokens, "max": settings.max_tokens}
    corpus = edit_config(
        runs.shards.config, [f"records.limits.section_tokens={lengths}"], where="test"
    )
    config = {
        "settings": settings.model_dump(mode="json"),
        "model": runs.models[Weights.BUS].config.model_dump(mode="json"),
        "records": corpus.model_dump(mode="json"),
        "calibration": None,
    }
    inputs = {"records": "9" * 64, **digests}
    results = conclude(raw, settings, config=config, inputs=inputs)
    write_report(out, raw, results, config=config, inputs=inputs)
    return results
