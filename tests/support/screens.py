"""A screen small enough to run in a test: two variants beside the baseline, a few steps each."""

import json
from pathlib import Path

import yaml

from pdt.records.corpus import compile_corpus
from pdt.screen.compile import Asked, compile_screen
from pdt.screen.manifest import SCREEN, Screen, seal_of
from pdt.terms import Split
from tests.support.evaluations import SMALL, chronicle_documents, small_config

STEPS = (
    "training.steps=3",
    "notes.codebook_start=drawn",
    "training.stages=[{first_step: 0, plan: oracle,"
    " trains: [lanes, plan_kv, snc, heads, note_writer]},"
    " {first_step: 2, plan: learned, trains: [planner]}]",
    "training.optimizer.warmup_steps=1",
    "training.optimizer.batch_documents=2",
    "training.save_steps=1",
    "training.watch.tensorboard=false",
)
DESIGN = {
    "preset": "nano",
    "seeds": [1729, 2718],
    "axes": [
        {"name": "memory width", "key": "reads.memory_width", "levels": [16]},
        {"name": "notes", "key": "notes.condition", "levels": ["self_only"]},
    ],
    "judged": {
        "split": "test",
        "documents": 4,
        "few": 2,
        "batch": 4,
        "conditions": ["oracle", "learned", "zero", "swap"],
    },
    "compared": {"confidence": 0.95, "resamples": 200, "seed": 1729, "correction": "holm"},
    "short": {"settings": list(STEPS)},
}


def small_records(path: Path, split: Split, count: int = 4) -> Path:
    """Chronicle documents of one split, compiled for the small model."""
    path.mkdir(parents=True, exist_ok=True)
    lines = [document.model_dump_json() for document in chronicle_documents(count, split)]
    (path / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    compile_corpus([path / "documents.jsonl"], path / "records", small_config())
    return path / "records"


def write_design(path: Path, **changes: object) -> Path:
    path.write_text(yaml.safe_dump(DESIGN | changes), encoding="utf-8")
    return path


def asked(design: Path, *overrides: str, **changes: object) -> Asked:
    return Asked("nano", overrides=(*SMALL, *overrides), design=design, short=True, **changes)  # type: ignore[arg-type]


def small_screen(path: Path, *overrides: str, **changes: object) -> tuple[Screen, Path]:
    """A compiled screen of one variant and one control, and its directory."""
    train = small_records(path / "train", Split.TRAIN)
    test = small_records(path / "test", Split.TEST)
    design = write_design(path / "design.yaml", **changes)
    out = path / "screen"
    return compile_screen(asked(design, *overrides), train, test, out), out


def sealed_anew(screen: Screen, directory: Path, **changes: object) -> Screen:
    """A screen with something else in it, sealed as if it had been compiled so."""
    changed = screen.model_copy(update=changes)
    changed = changed.model_copy(update={"seal": seal_of(changed.model_dump(mode="json"))})
    (directory / SCREEN).write_text(json.dumps(changed.model_dump(mode="json")))
    return changed


def process_of(run: str) -> int | None:
    """The process that does a run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"pdt.screen.task" in words and run.encode() in words:
                return int(entry.name)
    return None
