"""The commands of a study, in the order they build on one another.

Every step is a `pdt` command that a user could type; a step whose result is there is done.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pdt.config import TrainingConfig, load_config
from pdt.study.recipe import Recipe, RunRecipe
from pdt.terms import NotesCondition
from pdt.training.checkpoint import checkpoint_path
from pdt.training.curriculum import stages_of

CONDITIONS = (NotesCondition.BUS, NotesCondition.SELF_ONLY)


@dataclass(frozen=True)
class Step:
    """One command of the study."""

    name: str
    command: tuple[str, ...]
    """What follows `pdt`."""
    result: Path
    """There when the step is done: every command writes it last, and whole."""
    seconds: float
    """What it takes one core of the build machine; how the time left is told."""
    after: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    """Added when a killed command left its directory behind."""
    work: Path | None = None
    """That directory."""
    exits: tuple[int, ...] = (0,)
    """Exit codes that are no failure: a verdict with an unmet gate is a verdict."""

    @property
    def done(self) -> bool:
        return self.result.exists()

    @property
    def arguments(self) -> tuple[str, ...]:
        begun = self.work is not None and self.work.exists() and any(self.work.iterdir())
        return self.command + (self.resume if begun else ())


def steps_of(recipe: Recipe, out: Path, *, seeds: int, stories: Path) -> list[Step]:
    """All steps of the study, a step after all that it needs."""
    return [
        *_corpora(recipe, out),
        _trunk(recipe, out, stories),
        *(step for seed in range(seeds) for step in _seed(recipe, out, seed)),
    ]


def verdict_of(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}" / "verdict"


def last_checkpoint(recipe: Recipe, out: Path, seed: int, condition: NotesCondition) -> Path:
    """Where the last run of a condition ends."""
    return _checkpoint(
        recipe, recipe.runs[-1], _run_directory(out, seed, condition, recipe.runs[-1])
    )


def _corpora(recipe: Recipe, out: Path) -> Iterator[Step]:
    for name, corpus in recipe.corpora.items():
        target = out / "corpus" / name
        yield Step(
            f"corpus {name}",
            (
                "chronicle", "write", "--out", str(target), "--count", str(corpus.count),
                "--split", corpus.split.value, "--seed", str(recipe.corpus_seed),
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


def _trunk(recipe: Recipe, out: Path, stories: Path) -> Step:
    return Step(
        "trunk",
        (
            "study", "trunk", str(out / "records" / recipe.trunk.records), "--out",
            str(out / "trunk"), "--preset", recipe.preset, "--steps", str(recipe.trunk.steps),
            "--stories", str(stories),
        ),
        out / "trunk" / "config.json",
        recipe.trunk.steps * 4.0,
        after=(f"records {recipe.trunk.records}",),
    )  # fmt: skip


def _seed(recipe: Recipe, out: Path, seed: int) -> Iterator[Step]:
    start = out / f"seed-{seed}" / "start"
    for condition in CONDITIONS:
        model = start / condition.value
        yield Step(
            f"seed {seed} {condition.value} start",
            (
                "model", "init", str(out / "trunk"), "--out", str(model), "--preset", recipe.preset,
                "--seed", str(seed), *_set(_settings(recipe, condition)),
            ),
            model,
            2.0,
            after=("trunk",),
        )  # fmt: skip
        before = f"seed {seed} {condition.value} start"
        for number, run in enumerate(recipe.runs):
            step = _run(recipe, out, seed, condition, run, model, before, first=number == 0)
            before, model = step.name, step.result
            yield step
    bus, control = (last_checkpoint(recipe, out, seed, condition) for condition in CONDITIONS)
    verdict = verdict_of(out, seed)
    yield Step(
        f"seed {seed} verdict",
        (
            "eval", "run", str(out / "records" / recipe.judged_on), "--model", str(bus),
            "--self-only", str(control), "--out", str(verdict),
            "--documents", str(recipe.documents),
        ),
        verdict,
        recipe.documents * 8.0,
        after=(
            *(f"seed {seed} {c.value} {recipe.runs[-1].name}" for c in CONDITIONS),
            f"records {recipe.judged_on}",
        ),
        exits=(0, 1),
    )  # fmt: skip


def _run(
    recipe: Recipe,
    out: Path,
    seed: int,
    condition: NotesCondition,
    run: RunRecipe,
    model: Path,
    before: str,
    *,
    first: bool,
) -> Step:
    directory = _run_directory(out, seed, condition, run)
    settings = [
        *_settings(recipe, condition),
        *run.settings,
        f"training.seed={seed}",
        f"training.trunk_cache.directory={out / 'trunk-states'}",
        # The codes of an earlier run are kept: they mean something by now.
        *([] if first else ["notes.codebook_start=drawn"]),
    ]
    return Step(
        f"seed {seed} {condition.value} {run.name}",
        (
            "train", "run", str(out / "records" / run.records), "--model", str(model),
            "--preset", recipe.preset, "--out", str(directory), *_set(settings),
        ),
        _checkpoint(recipe, run, directory),
        _seconds(recipe, run),
        after=(before, f"records {run.records}"),
        resume=("--resume",),
        work=directory,
    )  # fmt: skip


def _settings(recipe: Recipe, condition: NotesCondition) -> list[str]:
    return [*recipe.settings, f"notes.condition={condition.value}"]


def _run_directory(out: Path, seed: int, condition: NotesCondition, run: RunRecipe) -> Path:
    return out / f"seed-{seed}" / condition.value / run.name


def _checkpoint(recipe: Recipe, run: RunRecipe, directory: Path) -> Path:
    training = _training(recipe, run)
    return checkpoint_path(directory, training.scaled(training.steps))


def _seconds(recipe: Recipe, run: RunRecipe) -> float:
    """A step of eight documents takes 3.5 seconds, one that trains the planner alone a third."""
    training = _training(recipe, run)
    size = training.optimizer.batch_documents * training.optimizer.accumulation / 8
    return size * sum(
        (stage.stop_step - stage.first_step) * (3.5 if len(stage.trains) > 1 else 1.2)
        for stage in stages_of(training)
    )


def _training(recipe: Recipe, run: RunRecipe) -> TrainingConfig:
    return load_config(recipe.preset, overrides=[*recipe.settings, *run.settings]).training


def _set(settings: list[str] | tuple[str, ...]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]
