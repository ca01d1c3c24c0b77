"""A small compiled corpus and a model that fits it, for tests of training."""

from pathlib import Path
from typing import Any

from pdt.config import PdtConfig, edit_config
from pdt.records.batch import RecordShards
from pdt.records.corpus import compile_corpus
from pdt.terms import Split
from tests.support.record_samples import sample_config, train_tokenizer, write_documents

SHORT = [
    "trunk.shape.vocabulary=400",
    "training.steps=8",
    "training.stages=[{first_step: 0, plan: oracle,"
    " trains: [lanes, plan_kv, snc, heads, note_writer]},"
    " {first_step: 3, plan: learned, trains: [planner]},"
    " {first_step: 5, plan: learned,"
    " trains: [planner, lanes, plan_kv, snc, heads, note_writer]}]",
    "training.optimizer.warmup_steps=2",
    "training.optimizer.accumulation=2",
    "training.save_steps=2",
    "training.recompute=false",
]
"""Three stages in eight steps."""


def ragged(number: int, data: dict[str, Any]) -> None:
    if number % 2:
        data["answer"]["dependencies"] = []
        for lane in (0, 1):
            data["answer"]["plans"][lane]["nodes"][1]["dependencies"] = []
        data["answer"]["sections"][1]["paragraphs"][1] += " Then it rained and rained for days."


def corpus(
    path: Path,
    *overrides: str,
    documents: int = 5,
    held_out: int = 0,
    block_tokens: int = 8,
) -> tuple[RecordShards, PdtConfig]:
    """Documents to train on, and after them some of the validation split."""

    def edit(number: int, data: dict[str, Any]) -> None:
        ragged(number, data)
        if number >= documents:
            data["split"] = "validation"

    config = sample_config(train_tokenizer(path / "t.json"), f"lanes.block_tokens={block_tokens}")
    source = write_documents(path / "in.jsonl", documents + held_out, edit=edit)
    compile_corpus([source], path / "out", config)
    shards = RecordShards(path / "out", split=Split.TRAIN)
    return shards, edit_config(config, [*SHORT, *overrides], where="test")
