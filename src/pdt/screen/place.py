"""Where a screen's runs lie, and how far each is, read from its directory alone.

    SCREEN/screen.json                   the sealed manifest
    SCREEN/runs/RUN/entry.json           what the run is bound to
    SCREEN/runs/RUN/train/, verdict/     as `pdt train run` and `pdt eval run` write them
    SCREEN/runs/RUN/failures.jsonl       every failure, kept
    SCREEN/runs/RUN/done.json            written last: the run is whole
    SCREEN/stop                          asks every process of the screen to end

Paper: Appendix A.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime

from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.evaluation.report.results import RESULTS
from pdt.lock import is_held, wait_for_run
from pdt.parse import NotParsed, parse_json
from pdt.provenance import MANIFEST, sha256_file, write_json
from pdt.screen.manifest import Screen, SealedRun, read_screen
from pdt.training.checkpoint import latest_checkpoint
from pdt.training.watch.metrics import STEP, read_metrics

RUNS, ENTRY, DONE, FAILURES, STOP = "runs", "entry.json", "done.json", "failures.jsonl", "stop"
TRAIN, VERDICT, LOG = "train", "verdict", "log.txt"


class RunState(StrEnum):
    WAITING = "waiting"
    """Nothing of it is there yet."""
    RUNNING = "running"
    STOPPED = "stopped"
    """Begun, and nobody is at it: it goes on from its last checkpoint."""
    FAILED = "failed"
    """It said why; it is done again only when that is asked for."""
    FINISHED = "finished"


class Failure(Contract):
    """A line of failures.jsonl."""

    at: AwareDatetime
    kind: Line
    """The error's name."""
    message: str
    step: int
    """Steps that were taken."""


class Done(Contract):
    """done.json: a run that is whole."""

    seal: Sha256
    run: Id
    checkpoint: Line
    """What was judged, in the run's directory."""
    manifest_sha256: Sha256
    """Of the verdict's manifest, which names every other file of it."""
    results_sha256: Sha256
    code: Sha256
    """Digest of the code that made it."""
    train_seconds: float
    """Of all its steps, whoever took them."""
    judge_seconds: float
    at: AwareDatetime


@dataclass(frozen=True)
class RunStanding:
    """One run, as `pdt screen status` shows it."""

    entry: SealedRun
    state: RunState
    step: int
    steps: int
    doing: str
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Place:
    """A screen in its directory."""

    directory: Path
    screen: Screen

    @classmethod
    def open(cls, directory: Path) -> "Place":
        """Refused when the screen is edited or not sealed."""
        return cls(directory, read_screen(directory))

    def of(self, run: str) -> Path:
        return self.directory / RUNS / run

    def done(self, run: str) -> Done | None:
        """None unless the run is whole, of this very screen, and its verdict what it says."""
        path = self.of(run) / DONE
        if not path.is_file():
            return None
        remedy = "Remove the run's directory and run it again."
        found = parse_contract(Done, path.read_bytes(), where=str(path), remedy=remedy)
        verdict = self.of(run) / VERDICT
        named = {RESULTS: found.results_sha256, MANIFEST: found.manifest_sha256}
        whole = all(
            (verdict / name).is_file() and sha256_file(verdict / name) == digest
            for name, digest in named.items()
        )
        return found if whole and found.seal == self.screen.seal and found.run == run else None

    def failures(self, run: str) -> tuple[Failure, ...]:
        path = self.of(run) / FAILURES
        if not path.is_file():
            return ()
        lines = path.read_text(encoding="utf-8").splitlines()
        return tuple(
            parse_contract(Failure, line, where=f"{path}:{number}", remedy="Remove that line.")
            for number, line in enumerate(lines, start=1)
        )

    def fail(self, run: str, error: Exception) -> None:
        """Keep why a run ended without an end."""
        failure = Failure(
            at=now(),
            kind=type(error).__name__,
            message=str(error),
            step=_steps_taken(self.of(run) / TRAIN),
        )
        with (self.of(run) / FAILURES).open("a", encoding="utf-8") as file:
            file.write(failure.model_dump_json() + "\n")

    def standing(self, entry: SealedRun) -> RunStanding:
        """How far a run is."""
        run, training = self.of(entry.run), self.screen.config_of(entry).training
        steps = training.scaled(training.steps)
        step = min(_steps_taken(run / TRAIN), steps)
        failures = self.failures(entry.run)
        doing = "judging" if step == steps else "training"
        if self.done(entry.run) is not None:
            state, doing = RunState.FINISHED, ""
        elif is_held(run):
            state = RunState.RUNNING
        elif failures and failures[-1].at > _last_begun(run):
            state, doing = RunState.FAILED, failures[-1].message.splitlines()[0]
        elif (run / ENTRY).is_file():
            state = RunState.STOPPED
        else:
            state, doing = RunState.WAITING, ""
        return RunStanding(entry, state, step, steps, doing, failures)

    def standings(self) -> list[RunStanding]:
        return [self.standing(entry) for entry in self.screen.runs]

    @property
    def stop_asked(self) -> bool:
        return (self.directory / STOP).exists()

    def ask_to_stop(self) -> None:
        write_json(self.directory / STOP, {"at": now().isoformat()})

    def forget_stop(self) -> None:
        (self.directory / STOP).unlink(missing_ok=True)

    @contextmanager
    def held(self, run: str) -> Iterator[None]:
        """Alone with a run: another attempt at it, perhaps on another machine, ends first."""
        self.of(run).mkdir(parents=True, exist_ok=True)
        with wait_for_run(self.of(run)):
            yield

    def mark(self, run: str) -> object:
        """Something that changes whenever more of a run would survive its loss."""
        begun = self.of(run) / f".{VERDICT}.begun"
        parts = sorted(path.name for path in begun.iterdir()) if begun.is_dir() else []
        newest = latest_checkpoint(self.of(run) / TRAIN)
        return newest, parts


def now() -> datetime:
    return datetime.now(UTC)


def begin_anew(run: Path) -> None:
    """Say that a run is taken up: a failure from before is history."""
    write_json(run / "begun.json", {"at": now().isoformat()})


def _last_begun(run: Path) -> datetime:
    try:
        tree: Any = parse_json((run / "begun.json").read_bytes())
        return datetime.fromisoformat(tree["at"])
    except (OSError, NotParsed, KeyError, TypeError, ValueError):
        return datetime.min.replace(tzinfo=UTC)


def _steps_taken(train: Path) -> int:
    return max(
        (line["step"] + 1 for line in read_metrics(train) if line["kind"] == STEP), default=0
    )
