"""Where a run stands, read from its directory alone: while it goes, after it, and after a kill."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pdt.config import PdtConfig, validate_config
from pdt.errors import CorruptFile, PdtError, UsageError
from pdt.lock import is_held
from pdt.provenance import MANIFEST, check_manifest, read_json_object
from pdt.training.curriculum import stages_of
from pdt.training.watch.metrics import EVALUATION, STEP, Metrics, losses_of, read_metrics
from pdt.training.watch.pace import Pace

State = Literal["running", "stopped", "finished"]


@dataclass(frozen=True)
class CheckpointState:
    """One checkpoint of a run."""

    name: str
    step: int
    damage: str | None
    """What is wrong with it; None when it is whole."""


@dataclass(frozen=True)
class RunStatus:
    """What `pdt train status` prints."""

    run: str
    state: State
    step: int
    """Steps taken, as the metrics say."""
    steps: int
    """Steps of the whole curriculum."""
    stage: int
    stages: int
    plan: str
    last_line: str | None
    """When the last line of metrics was written."""
    losses: dict[str, float]
    """Of the last step."""
    tokens_per_second: float | None
    documents_per_second: float | None
    seconds_left: float | None
    """At this speed, to the end of the curriculum; none when it is finished."""
    resumes_from: str | None
    """The newest whole checkpoint."""
    checkpoints: tuple[CheckpointState, ...]
    half_written: tuple[str, ...]
    """What a killed run was writing; --resume removes it."""
    evaluations: tuple[Metrics, ...]
    """Held-out losses at the stage borders."""


def run_config(run: Path) -> PdtConfig:
    """The configuration a run was begun with."""
    if not (run / MANIFEST).is_file():
        raise UsageError(
            f"{run} is not a training run: it has no {MANIFEST}.\n"
            "Give the --out of `pdt train run`."
        )
    manifest = read_json_object(run / MANIFEST)
    return validate_config(manifest.get("config") or {}, where=str(run / MANIFEST))


def read_status(run: Path, *, digests: bool = False) -> RunStatus:
    """Where the run stands; checkpoints are checked by size, or byte for byte with `digests`."""
    training = run_config(run).training
    lines = read_metrics(run)
    pace = Pace(training)
    for line in lines:
        pace.take(line)
    taken = [line for line in lines if line["kind"] == STEP]
    stages, steps = stages_of(training), training.scaled(training.steps)
    stage = stages[taken[-1]["stage"] if taken else 0]
    found = [_checkpoint(path, digests) for path in sorted(run.glob("step-*"))]
    checkpoints = tuple(point for point in found if point is not None)
    whole = [point for point in checkpoints if point.damage is None]
    running = is_held(run)
    finished = bool(whole) and whole[-1].step >= steps
    return RunStatus(
        run=str(run),
        state="running" if running else "finished" if finished else "stopped",
        step=pace.step,
        steps=steps,
        stage=stage.number,
        stages=len(stages),
        plan=stage.plan.value,
        last_line=lines[-1].get("at") if lines else None,
        losses=losses_of(taken[-1]) if taken else {},
        tokens_per_second=pace.tokens_per_second,
        documents_per_second=pace.documents_per_second,
        seconds_left=None if finished else pace.seconds_left,
        resumes_from=whole[-1].name if whole else None,
        checkpoints=checkpoints,
        half_written=()
        if running
        else tuple(p.name for p in sorted(run.glob(".step-*.partial-*"))),
        evaluations=tuple(line for line in lines if line["kind"] == EVALUATION),
    )


def _checkpoint(directory: Path, digests: bool) -> CheckpointState | None:
    """None for one that a running trainer has just removed."""
    number = directory.name.removeprefix("step-")
    if not number.isdecimal():
        return None
    damage = _damage(directory, digests)
    return CheckpointState(directory.name, int(number), damage) if directory.exists() else None


def _damage(directory: Path, digests: bool) -> str | None:
    manifests = sorted(directory.rglob(MANIFEST))
    if directory / MANIFEST not in manifests:
        return f"{MANIFEST} is missing"
    try:
        for manifest in manifests:
            if digests:
                check_manifest(manifest.parent, required=())
            else:
                _check_sizes(manifest.parent)
    except PdtError as error:
        return str(error).splitlines()[0]
    return None


def _check_sizes(directory: Path) -> None:
    files = read_json_object(directory / MANIFEST).get("files")
    for name, expected in files.items() if isinstance(files, dict) else ():
        path = directory / name
        size = path.stat().st_size if path.is_file() else None
        if size != expected["bytes"]:
            raise CorruptFile(
                f"{path} " + ("is missing" if size is None else f"has {size} bytes, not all of it")
            )
