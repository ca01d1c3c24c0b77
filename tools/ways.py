"""Count the files that a document visits on its way through `pdt`, room by room.

    python tools/ways.py WORK [generate|build|train|eval]…

A file is visited when a function of it runs while the command does; imports do not count, for
everything is imported first. WORK is an empty directory for what the commands write. The numbers
in docs/architecture.md are this program's.
"""

import importlib
import inspect
import pkgutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pdt
from pdt.cli import main as pdt_main

HOME = Path(inspect.getfile(pdt)).parent
WAYS = ("generate", "build", "train", "eval")
SMALL = ["--study", "nano", "--split", "test"]


def import_everything() -> None:
    for module in pkgutil.walk_packages(pdt.__path__, "pdt."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@contextmanager
def watched(seen: set[CodeType]) -> Iterator[None]:
    """Every Python function that is called, in every thread."""

    def note(frame: FrameType, event: str, given: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run(*words: str | Path) -> None:
    before, sys.argv = sys.argv, ["pdt", *map(str, words)]
    try:
        pdt_main()
    except SystemExit as end:
        if end.code not in (0, 1, None):  # 1: an evidence gate is unmet, on so few documents
            raise
    finally:
        sys.argv = before


def prepare(work: Path) -> None:
    """What the four commands start from."""
    run("chronicle", "write", *SMALL, "--count", "8", "--out", work / "test")
    run("record", "compile", work / "test", "--preset", "nano", "--out", work / "test-records")
    run("chronicle", "write", "--count", "16", "--out", work / "corpus")
    run("chronicle", "write", "--count", "4", "--split", "validation", "--out", work / "held-out")
    given = [work / "corpus", work / "held-out"]
    run("record", "compile", *given, "--preset", "nano", "--out", work / "records")
    run("chronicle", "write", "--count", "2", "--bundles", "--out", work / "bundles")


def command(way: str, work: Path) -> list[str | Path]:
    words: dict[str, list[str | Path]] = {
        "generate": ["generate", work / "test" / "documents.jsonl", "--model", "nano"],
        "build": ["corpus", "build", work / "bundles", "--out", work / "built", "--workers", "1"],
        "train": [
            "train", "run", work / "records", "--model", "nano", "--preset", "nano",
            "--out", work / "run", "--until", "1", "--set", "training.optimizer.accumulation=1",
            "--set", "notes.codebook_start=drawn",
        ],
        "eval": [
            "eval", "run", work / "test-records", "--model", "nano", "--self-only",
            "nano-self-only", "--out", work / "verdict", "--documents", "2", "--workers", "1",
        ],
    }  # fmt: skip
    return words[way]


def visited(seen: set[CodeType]) -> list[Path]:
    """Files of the package with a function among them; a class body or a module is none."""
    files = {Path(code.co_filename) for code in seen if code.co_flags & inspect.CO_OPTIMIZED}
    return sorted(path.relative_to(HOME) for path in files if path.is_relative_to(HOME))


def main(work: Path, ways: list[str]) -> None:
    import_everything()
    prepare(work)
    for way in ways:
        seen: set[CodeType] = set()
        with watched(seen):
            run(*command(way, work))
        files = visited(seen)
        rooms = Counter(path.parts[0] if len(path.parts) > 1 else "pdt" for path in files)
        print(f"{way}: {len(files)} files: {', '.join(f'{r} {n}' for r, n in rooms.items())}")
        (work / f"{way}.txt").write_text("\n".join(map(str, files)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(WAYS):
        sys.exit(f"usage: python tools/ways.py WORK [{'|'.join(WAYS)}]…")
    main(Path(sys.argv[1]), sys.argv[2:] or list(WAYS))
