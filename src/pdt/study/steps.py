"""The commands of a study, in the order they build on one another.

Every step is a `pdt` command that a user could type; a step whose result is there is done.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pdt.config import TrainingConfig, load_config
from pdt.evaluation.protocol.conditions import (
    COINED,
    GENERATED,
    HARDER,
    LEARNED,
    NO_DYNAMIC,
    ORACLE,
    SCORED,
    SELF_ONLY,
    SWAP,
    ZERO,
    along_with,
)
from pdt.study.recipe import CONDITIONS, DrillRecipe, Recipe, TrunkRecipe
from pdt.study.states import read_mark
from pdt.terms import NotesCondition, Split
from pdt.training.curriculum import stages_of
from pdt.training.saved_step import checkpoint_path

TRAINING, PLANNING, READING = 0.45, 0.012, 0.15
"""Seconds a document on one core of the build machine: with lanes, the planner alone, and the trunk
where a document is read for the first time."""
JUDGING = 0.4
"""The same for a document under one condition of one kind of measurement."""
READERS = 2
"""Commands that share out the reading."""
TRUNK_STATES = "trunk-states"
FURTHER_SEEDS = (ORACLE, LEARNED, ZERO, SWAP, NO_DYNAMIC, SELF_ONLY, *HARDER)
"""What gates read; the destructive controls are run in the first seed alone."""


@dataclass(frozen=True)
class Step:
    """One command of the study."""

    name: str
    command: tuple[str, ...]
    """What follows `pdt`."""
    result: Path
    """There when the step is done: every command writes it last, and whole."""
    seconds: float
    """What it takes on the build machine; how the time left is told."""
    after: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    """Added when a killed command left something to go on from."""
    work: Path | None = None
    """Where it would have left it."""
    left_behind: str = "*"
    """What that looks like; a directory without it is begun again."""
    alone: bool = False
    """Everything else waits for it, so it may have every worker's core."""
    exits: tuple[int, ...] = (0,)
    """Exit codes that are no failure: a verdict with an unmet gate is a verdict."""

    @property
    def done(self) -> bool:
        return self.result.exists()

    def arguments(self) -> tuple[str, ...]:
        """The command as it must be given now; what nothing can go on from is removed."""
        if self.work is not None and self.work.exists():
            if any(self.work.glob(self.left_behind)):
                return self.command + self.resume
            shutil.rmtree(self.work)
        return self.command


def steps_of(recipe: Recipe, out: Path, *, seeds: int, stories: Path) -> list[Step]:
    """All steps of the study, a step after all that it needs."""
    return [
        *_corpora(recipe, out),
        *([_trunk(recipe.trunk, recipe.preset, out, stories)] if recipe.trunk else []),
        *(step for seed in range(seeds) for step in _seed(recipe, out, seed)),
    ]


def verdict_of(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}" / "verdict"


def last_checkpoint(recipe: Recipe, out: Path, seed: int, condition: NotesCondition) -> Path:
    """Where the run of a condition ends."""
    training = _training(recipe)
    return checkpoint_path(_run_directory(out, seed, condition), training.scaled(training.steps))


def _corpora(recipe: Recipe, out: Path) -> Iterator[Step]:
    for name, corpus in recipe.corpora.items():
        target = out / "corpus" / name
        yield Step(
            f"corpus {name}",
            (
                "chronicle", "write", "--out", str(target), "--count", str(corpus.count),
                "--split", corpus.split.value, "--seed", str(corpus.seed),
                *_set(corpus.dials),
            ),
            target,
            corpus.count / 60,
        )  # fmt: skip
    for name, parts in recipe.records.items():
        target = out / "records" / name
        yield Step(
            f"records {name}",
            (
                "record", "compile", *(str(out / "corpus" / part) for part in parts),
                "--preset", recipe.preset, "--out", str(target),
            ),
            target / "manifest.json",
            sum(recipe.corpora[part].count for part in parts) / 200,
            after=tuple(f"corpus {part}" for part in parts),
            resume=("--resume",),
            work=target,
        )  # fmt: skip


def _trunk(trunk: TrunkRecipe, preset: str, out: Path, stories: Path) -> Step:
    return Step(
        "trunk",
        (
            "study", "trunk", str(out / "records" / trunk.records), "--out",
            str(out / "trunk"), "--preset", preset, "--steps", str(trunk.steps),
            "--stories", str(stories),
        ),
        out / "trunk" / "config.json",
        trunk.steps * 4.0,
        after=(f"records {trunk.records}",),
        alone=True,
    )  # fmt: skip


def _seed(recipe: Recipe, out: Path, seed: int) -> Iterator[Step]:
    begin, after = recipe.begin, [f"records {recipe.train}"]
    if recipe.drill is not None:
        prepared = [_from_nothing(recipe, recipe.drill, out, seed, c) for c in CONDITIONS]
        drills = [drill for _, drill in prepared]
        states = _states(recipe, out)
        yield from (start for start, _ in prepared)
        yield from drills
        yield from states if seed == 0 else ()
        begin = {c: str(drill.result) for c, drill in zip(CONDITIONS, drills, strict=True)}
        after += [step.name for step in (*drills, *states)]
    yield from (_run(recipe, out, seed, c, begin[c], tuple(after)) for c in CONDITIONS)
    bus, control = _packed(recipe, out, seed)
    yield from (bus, control)
    verdict = verdict_of(out, seed)
    conditions = () if seed == 0 else FURTHER_SEEDS
    runs = len(along_with(conditions or GENERATED, (*GENERATED, *SCORED, *COINED)))
    yield Step(
        f"seed {seed} verdict",
        (
            "eval", "run", str(out / "records" / recipe.judged_on), "--model", str(bus.result),
            "--self-only", str(control.result), "--out", str(verdict),
            "--documents", str(recipe.documents),
            *(f"--condition={condition.name}" for condition in conditions),
        ),
        verdict,
        recipe.documents * runs * JUDGING,
        after=(bus.name, control.name, f"records {recipe.judged_on}"),
        exits=(0, 1),
    )  # fmt: skip


def _packed(recipe: Recipe, out: Path, seed: int) -> list[Step]:
    """Both models as they ship: in 16 bits, the control on the bus model's trunk."""
    models = out / f"seed-{seed}" / "models"
    bus, control = models / recipe.preset, models / f"{recipe.preset}-self-only"
    steps: list[Step] = []
    for condition, target, shared in (
        (NotesCondition.BUS, bus, ()),
        (NotesCondition.SELF_ONLY, control, ("--trunk-of", str(bus))),
    ):
        source = last_checkpoint(recipe, out, seed, condition)
        step = Step(
            f"seed {seed} {condition.value} model",
            ("model", "pack", str(source), "--half", *shared, "--out", str(target)),
            target,
            3.0,
            after=(f"seed {seed} {condition.value} run", *(made.name for made in steps)),
        )
        steps.append(step)
    return steps


def _states(recipe: Recipe, out: Path) -> list[Step]:
    """The training documents, shared out and read through the trunk once for all runs."""
    model, cache = _start_model(out, 0, CONDITIONS[0]), out / TRUNK_STATES
    corpora = (recipe.corpora[part] for part in recipe.records[recipe.train])
    documents = sum(corpus.count for corpus in corpora if corpus.split is Split.TRAIN)
    return [
        Step(
            f"trunk states {part} of {READERS}",
            (
                "study", "states", str(out / "records" / recipe.train), "--model", str(model),
                "--cache", str(cache), "--part", str(part), "--parts", str(READERS),
            ),
            read_mark(cache, part, READERS),
            READING * documents / READERS,
            after=(f"seed 0 {CONDITIONS[0].value} start", f"records {recipe.train}"),
        )
        for part in range(1, READERS + 1)
    ]  # fmt: skip


def _from_nothing(
    recipe: Recipe, drill: DrillRecipe, out: Path, seed: int, condition: NotesCondition
) -> tuple[Step, Step]:
    """An untrained model on the adapted trunk, and its drill."""
    model = _start_model(out, seed, condition)
    start = Step(
        f"seed {seed} {condition.value} start",
        (
            "model", "init", str(out / "trunk"), "--out", str(model), "--preset", recipe.preset,
            "--seed", str(seed), *_set(_settings(recipe, condition)),
        ),
        model,
        2.0,
        after=("trunk",),
    )  # fmt: skip
    directory = out / f"seed-{seed}" / condition.value / "drill"
    drilled = Step(
        f"seed {seed} {condition.value} drill",
        (
            "study", "drill", str(out / "corpus" / drill.corpus), "--model", str(model),
            "--out", str(directory), "--steps", str(drill.steps), "--seed", str(seed),
        ),
        directory / "model",
        drill.steps * 2.5,
        after=(start.name, f"corpus {drill.corpus}"),
    )  # fmt: skip
    return start, drilled


def _run(
    recipe: Recipe,
    out: Path,
    seed: int,
    condition: NotesCondition,
    model: str,
    after: tuple[str, ...],
) -> Step:
    """The four stages, from `model` on."""
    directory = _run_directory(out, seed, condition)
    settings = [
        *_settings(recipe, condition),
        f"training.seed={seed}",
        f"training.trunk_cache.directory={out / TRUNK_STATES}",
        "notes.codebook_start=drawn",  # the codes of the drill stay: they mean something by now
    ]
    return Step(
        f"seed {seed} {condition.value} run",
        (
            "train", "run", str(out / "records" / recipe.train), "--model", model,
            "--preset", recipe.preset, "--out", str(directory), *_set(settings),
        ),
        last_checkpoint(recipe, out, seed, condition),
        _seconds(recipe),
        after=after,
        resume=("--resume",),
        work=directory,
        left_behind="step-*",
    )  # fmt: skip


def _settings(recipe: Recipe, condition: NotesCondition) -> list[str]:
    return [*recipe.settings, f"notes.condition={condition.value}"]


def _run_directory(out: Path, seed: int, condition: NotesCondition) -> Path:
    return out / f"seed-{seed}" / condition.value / "run"


def _start_model(out: Path, seed: int, condition: NotesCondition) -> Path:
    return out / f"seed-{seed}" / "start" / condition.value


def _seconds(recipe: Recipe) -> float:
    """By document, with the trunk's states at hand."""
    training = _training(recipe)
    size = training.optimizer.batch_documents * training.optimizer.accumulation
    return sum(
        (stage.stop_step - stage.first_step)
        * size
        * (TRAINING if len(stage.trains) > 1 else PLANNING)
        for stage in stages_of(training)
    )


def _training(recipe: Recipe) -> TrainingConfig:
    return load_config(recipe.preset, overrides=recipe.settings).training


def _set(settings: list[str] | tuple[str, ...]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]
