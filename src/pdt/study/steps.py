"""The commands of a study, in the order they build on one another.

Every step is a `pdt` command that a user could type; a step whose result is there is done.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    chosen_conditions,
)
from pdt.evaluation.protocol.settings import REPEATS
from pdt.study.recipe import CONDITIONS, DrillRecipe, Phase, Recipe, TrunkRecipe
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
_COMMON = NotesCondition.NO_DYNAMIC
"""Under which phases before notes run."""
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
    """Where the last phase of a condition ends."""
    (*_, last) = recipe.phases
    return _end_of(recipe, last, out, seed, condition)


def _end_of(recipe: Recipe, phase: str, out: Path, seed: int, condition: NotesCondition) -> Path:
    training = _training(recipe, recipe.phases[phase])
    directory = _condition_directory(out, seed, condition) / phase
    return checkpoint_path(directory, training.scaled(training.steps))


def _corpora(recipe: Recipe, out: Path) -> Iterator[Step]:
    for name, corpus in recipe.corpora.items():
        target = out / "corpus" / name
        command = (
            "corpus" if corpus.texts else "chronicle", "write", "--out", str(target),
            "--count", str(corpus.count), "--split", corpus.split.value,
            "--seed", str(corpus.seed), "--preset", recipe.preset, *_set(corpus.dials),
        )  # fmt: skip
        if corpus.texts:  # in parts, and the manifest last
            yield Step(
                f"corpus {name}",
                command,
                target / "manifest.json",
                corpus.count / 35,
                resume=("--resume",),
                work=target,
                left_behind="parts/*",
            )
        else:
            yield Step(f"corpus {name}", command, target, corpus.count / 60)
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
    begun = {c: _Begun(model) for c, model in recipe.begin.items()}
    if not recipe.begin:
        states = _states(recipe, out) if recipe.keeps_states else []
        started: dict[NotesCondition, _Begun] = {}
        for condition in (_COMMON,) if recipe.before_notes else CONDITIONS:
            start = _start(recipe, out, seed, condition)
            yield start
            started[condition] = _Begun.by(start)
        yield from states if seed == 0 else ()
        if recipe.before_notes:
            first = started[_COMMON].after_also(states)
            common = list(_phases(recipe, recipe.before_notes, out, seed, _COMMON, first))
            yield from common
            given = [_given_notes(common[-1], out, seed, condition) for condition in CONDITIONS]
            yield from given
            started = {c: _Begun.by(step) for c, step in zip(CONDITIONS, given, strict=True)}
        for condition in CONDITIONS:
            begun[condition] = started[condition].after_also(states)
            if recipe.drill is not None:
                drilled = _drilled(recipe, recipe.drill, out, seed, condition, started[condition])
                yield drilled
                begun[condition] = _Begun.by(drilled).after_also(states)
    for condition in CONDITIONS:
        yield from _phases(recipe, recipe.with_notes, out, seed, condition, begun[condition])
    bus, control = _packed(recipe, out, seed)
    yield from (bus, control)
    verdict = verdict_of(out, seed)
    named = chosen_conditions(recipe.conditions, with_self_only=True, with_learned=True)
    conditions = named if recipe.conditions else () if seed == 0 else FURTHER_SEEDS
    runs = len(along_with(conditions or GENERATED, (*GENERATED, *SCORED, *COINED)))
    yield Step(
        f"seed {seed} verdict",
        (
            "eval", "run", str(out / "records" / recipe.judged_on), "--model", str(bus.result),
            "--self-only", str(control.result), "--out", str(verdict),
            "--documents", str(recipe.documents),
            *(() if recipe.repeats == REPEATS else (f"--repeats={recipe.repeats}",)),
            *(() if recipe.screen == "exact" else ("--screen", recipe.screen)),
            *(f"--condition={condition.name}" for condition in conditions),
        ),
        verdict,
        recipe.documents * runs * JUDGING * recipe.times_nano,
        after=(bus.name, control.name, f"records {recipe.judged_on}"),
        exits=(0, 1),
    )  # fmt: skip


def _packed(recipe: Recipe, out: Path, seed: int) -> list[Step]:
    """Both models as they ship: in 16 bits, the control on the bus model's trunk."""
    models = out / f"seed-{seed}" / "models"
    bus, control = models / recipe.preset, models / f"{recipe.preset}-self-only"
    (*_, last) = recipe.phases
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
            after=(f"seed {seed} {condition.value} {last}", *(made.name for made in steps)),
        )
        steps.append(step)
    return steps


def _states(recipe: Recipe, out: Path) -> list[Step]:
    """The training documents, shared out and read through the trunk once for all runs."""
    condition = _COMMON if recipe.before_notes else CONDITIONS[0]
    model, cache = _start_model(out, 0, condition), out / TRUNK_STATES
    first = recipe.first.records
    corpora = (recipe.corpora[part] for part in recipe.records[first])
    documents = sum(corpus.count for corpus in corpora if corpus.split is Split.TRAIN)
    return [
        Step(
            f"trunk states {part} of {READERS}",
            (
                "study", "states", str(out / "records" / first), "--model", str(model),
                "--cache", str(cache), "--part", str(part), "--parts", str(READERS),
            ),
            read_mark(cache, part, READERS),
            READING * recipe.times_nano * documents / READERS,
            after=(f"seed 0 {condition.value} start", f"records {first}"),
        )
        for part in range(1, READERS + 1)
    ]  # fmt: skip


def _start(recipe: Recipe, out: Path, seed: int, condition: NotesCondition) -> Step:
    """An untrained model on the adapted trunk."""
    model = _start_model(out, seed, condition)
    settings = [
        *_settings(recipe.settings, condition),
        *(["lanes.shared=true"] if recipe.first.together else []),
    ]
    return Step(
        f"seed {seed} {condition.value} start",
        (
            "model", "init", recipe.pretrained or str(out / "trunk"), "--out", str(model),
            "--preset", recipe.preset, "--seed", str(seed), *_set(settings),
        ),
        model,
        2.0,
        after=() if recipe.pretrained else ("trunk",),
    )  # fmt: skip


def _given_notes(last: Step, out: Path, seed: int, condition: NotesCondition) -> Step:
    """What was trained without notes, for lanes that will read them."""
    target = _start_model(out, seed, condition)
    return Step(
        f"seed {seed} {condition.value} start",
        (
            "model", "notes", str(last.result), "--condition", condition.value,
            "--out", str(target),
        ),
        target,
        3.0,
        after=(last.name,),
    )  # fmt: skip


def _drilled(
    recipe: Recipe,
    drill: DrillRecipe,
    out: Path,
    seed: int,
    condition: NotesCondition,
    begun: "_Begun",
) -> Step:
    directory = _condition_directory(out, seed, condition) / "drill"
    beside = drill.beside
    kept = () if beside is None else ("--beside", str(out / "records" / beside))
    return Step(
        f"seed {seed} {condition.value} drill",
        (
            "study", "drill", str(out / "corpus" / drill.corpus), "--model", begun.model,
            "--out", str(directory), "--steps", str(drill.steps), "--bits", drill.bits,
            "--seed", str(seed), *kept,
        ),
        directory / "model",
        drill.steps * (2.5 if beside is None else 6.0),
        after=(
            *begun.after, f"corpus {drill.corpus}",
            *(() if beside is None else (f"records {beside}",)),
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class _Begun:
    """A model to go on from, and the steps that must be done first."""

    model: str
    after: tuple[str, ...] = ()

    @classmethod
    def by(cls, step: Step) -> "_Begun":
        return cls(str(step.result), (step.name,))

    def after_also(self, steps: Sequence[Step]) -> "_Begun":
        return replace(self, after=(*self.after, *(step.name for step in steps)))


def _phases(
    recipe: Recipe,
    phases: Mapping[str, Phase],
    out: Path,
    seed: int,
    condition: NotesCondition,
    begun: _Begun,
) -> Iterator[Step]:
    """Every phase from where the last one ended; lanes that shared a stack part between two."""
    names = list(recipe.phases)
    for name, phase in phases.items():
        before = recipe.phases[names[names.index(name) - 1]] if name != names[0] else None
        if before is not None and before.together and not phase.together:
            parted = _parted(out, seed, condition, begun)
            yield parted
            begun = _Begun.by(parted)
        run = _run(recipe, name, out, seed, condition, begun)
        yield run
        begun = _Begun.by(run)


def _parted(out: Path, seed: int, condition: NotesCondition, begun: _Begun) -> Step:
    target = _condition_directory(out, seed, condition) / "parted"
    command = ("model", "part", begun.model, "--out", str(target))
    return Step(f"seed {seed} {condition.value} parted", command, target, 3.0, after=begun.after)


def _run(
    recipe: Recipe,
    name: str,
    out: Path,
    seed: int,
    condition: NotesCondition,
    begun: _Begun,
) -> Step:
    """One phase, from `begun` on."""
    phase = recipe.phases[name]
    directory = _condition_directory(out, seed, condition) / name
    settings = [
        *_settings(recipe.settings_of(phase), condition),
        f"training.seed={seed}",
        *([f"training.trunk_cache.directory={out / TRUNK_STATES}"] if recipe.keeps_states else []),
        "notes.codebook_start=drawn",  # the codes of the drill stay: they mean something by now
    ]
    return Step(
        f"seed {seed} {condition.value} {name}",
        (
            "train", "run", str(out / "records" / phase.records), "--model", begun.model,
            "--preset", recipe.preset, "--out", str(directory), *_set(settings),
        ),
        _end_of(recipe, name, out, seed, condition),
        _seconds(recipe, phase),
        after=(f"records {phase.records}", *begun.after),
        resume=("--resume",),
        work=directory,
        left_behind="step-*",
    )  # fmt: skip


def _settings(settings: tuple[str, ...], condition: NotesCondition) -> list[str]:
    return [*settings, f"notes.condition={condition.value}"]


def _condition_directory(out: Path, seed: int, condition: NotesCondition) -> Path:
    return out / f"seed-{seed}" / condition.value


def _start_model(out: Path, seed: int, condition: NotesCondition) -> Path:
    return out / f"seed-{seed}" / "start" / condition.value


def _seconds(recipe: Recipe, phase: Phase) -> float:
    """By document, with the trunk's states at hand."""
    training = _training(recipe, phase)
    size = training.optimizer.batch_documents * training.optimizer.accumulation
    return sum(
        (stage.stop_step - stage.first_step)
        * size
        * (TRAINING if len(stage.trains) > 1 else PLANNING)
        * recipe.times_nano
        for stage in stages_of(training)
    )


def _training(recipe: Recipe, phase: Phase) -> TrainingConfig:
    return load_config(recipe.preset, overrides=recipe.settings_of(phase)).training


def _set(settings: list[str] | tuple[str, ...]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]
