"""The study as commands: in order, skipped when done, stopped at a failure, bound to a recipe."""

import io
import os
import signal
import threading
from pathlib import Path

import pytest
from rich.console import Console

from pdt.errors import BindingMismatch, PdtError, UsageError
from pdt.evaluation.protocol.conditions import GENERATED, HARDER
from pdt.evaluation.protocol.evidence_gates import registered_questions
from pdt.study.recipe import Recipe, load_recipe
from pdt.study.run import Study, bind_study
from pdt.study.steps import Step, steps_of


def test_every_step_comes_after_what_it_needs_and_makes_what_others_name(tmp_path: Path) -> None:
    steps = steps_of(load_recipe("nano"), tmp_path, seeds=3, stories=tmp_path / "data")
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    for place, step in enumerate(steps):
        assert set(step.after) <= set(names[:place])
    results = {str(step.result) for step in steps} | {str(s.work) for s in steps if s.work}
    for step in steps:
        for flag in ("--model", "--self-only"):
            if flag in step.command and step.command[0] != "model":
                assert step.command[step.command.index(flag) + 1] in results


def test_bus_and_self_only_are_the_same_commands_but_for_the_condition() -> None:
    steps = steps_of(load_recipe("nano"), Path("study"), seeds=1, stories=Path("data"))
    bus, control = (
        [" ".join(s.command).replace(c, "*") for s in steps if f" {c} " in f"{s.name} "]
        for c in ("bus", "self_only")
    )
    trunk_of = " --trunk-of study/seed-0/models/nano"
    assert trunk_of in control[-1]
    control[-1] = control[-1].replace(trunk_of, "").replace("models/nano-self-only", "models/nano")
    assert bus == control and len(bus) == 4


def test_the_trunk_is_read_once_before_any_run() -> None:
    steps = steps_of(load_recipe("nano"), Path("study"), seeds=2, stories=Path("data"))
    readers = {step.name for step in steps if step.command[:2] == ("study", "states")}
    runs = [step for step in steps if step.command[:2] == ("train", "run")]
    assert len(readers) == 2 and len(runs) == 4
    assert all(readers <= set(run.after) for run in runs)


def test_every_seed_measures_what_gates_read_and_the_first_all_else() -> None:
    read = {gate.measure for question in registered_questions() for gate in question.gates}
    names = {condition.name for condition in GENERATED}
    asked = {part for measure in read for part in measure.split(".") if part in names}
    assert {"oracle", "swap", "no_dynamic", "self_only", "transplant", "dropped"} <= asked
    asked |= {"learned", "zero"}  # the contrasts of planner.* and sibling.*
    asked |= {condition.name for condition in HARDER}  # dealt.*, persistence.*
    first, *further = (
        [part for part in step.command if part.startswith("--condition=")]
        for step in steps_of(load_recipe("nano"), Path("s"), seeds=3, stories=Path("data"))
        if step.command[:2] == ("eval", "run")
    )
    assert first == []  # all of them
    assert all(set(named) == {f"--condition={name}" for name in asked} for named in further)


def test_the_quick_study_goes_on_from_the_models_in_the_package() -> None:
    full, quick = load_recipe("nano"), load_recipe("nano-quick")
    assert quick.corpora["test"].dials == full.corpora["test"].dials
    assert {c.seed for c in quick.corpora.values()}.isdisjoint(
        c.seed for c in full.corpora.values()
    )
    steps = steps_of(quick, Path("study"), seeds=1, stories=Path("data"))
    assert not any(step.command[0] == "study" for step in steps)
    begun = [s.command[s.command.index("--model") + 1] for s in steps if s.command[0] == "train"]
    assert begun == ["nano", "nano-self-only"]


def test_a_recipe_without_a_beginning_is_refused() -> None:
    tree = load_recipe("nano").model_dump()
    for wrong in ({"drill": None}, {"begin": {"bus": "nano"}}):
        with pytest.raises(ValueError, match="begins with trunk and drill, or with a model"):
            Recipe.model_validate(tree | wrong)


def command(tmp_path: Path, name: str, *arguments: str, after: tuple[str, ...] = ()) -> Step:
    return Step(name, arguments, tmp_path / name, 1.0, after)


def test_steps_run_once_in_order_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    write = ("chronicle", "write", "--count", "2", "--out")
    steps = [
        command(tmp_path, "b", *write, str(tmp_path / "b"), after=("a",)),
        command(tmp_path, "a", *write, str(tmp_path / "a")),
    ]
    said = io.StringIO()
    Study(steps, tmp_path, workers=2).run(Console(file=said))
    lines = said.getvalue().splitlines()
    assert [line[0] for line in lines if line[1:2] == ":"] == ["a", "b"]
    again = io.StringIO()
    Study(steps, tmp_path, workers=2).run(Console(file=again))
    assert ":" not in again.getvalue()


def test_a_killed_run_resumes_from_a_checkpoint_and_begins_again_without_one(
    tmp_path: Path,
) -> None:
    work = tmp_path / "run"
    step = Step("a", ("train",), work / "step-9", 1.0, (), ("--resume",), work, "step-*")
    assert step.arguments() == ("train",)
    work.mkdir()
    (work / "metrics.jsonl").touch()
    assert step.arguments() == ("train",) and not work.exists()
    (work / "step-000004").mkdir(parents=True)
    assert step.arguments() == ("train", "--resume") and work.exists()


def test_a_terminated_study_takes_its_commands_with_it(tmp_path: Path) -> None:
    """It is a command that never ends by itself: the killer stops study and command."""
    steps = [
        command(
            tmp_path, "a", "chronicle", "write", "--count", "1000000", "--out", str(tmp_path / "a")
        )
    ]
    study = Study(steps, tmp_path, workers=1)
    killer = threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGTERM))
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        study.run(Console(file=io.StringIO()))
    (left,) = study.running
    assert left.process.poll() is not None


def test_a_failed_step_stops_the_study_with_its_own_words(tmp_path: Path) -> None:
    steps = [
        command(tmp_path, "a", "chronicle", "write", "--out", str(tmp_path / "a"), "--set", "x=1")
    ]
    with pytest.raises(PdtError, match=r"step 'a' failed with exit code 2(.|\n)*Dials: size"):
        Study(steps, tmp_path, workers=1).run(Console(file=io.StringIO()))


def test_a_directory_belongs_to_one_recipe(tmp_path: Path) -> None:
    recipe = load_recipe("nano")
    bind_study(recipe, tmp_path / "study")
    bind_study(recipe, tmp_path / "study")
    with pytest.raises(BindingMismatch, match=r"another recipe(.|\n)*seeds +directory 3 +now 9"):
        bind_study(recipe.model_copy(update={"seeds": 9}), tmp_path / "study")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match="holds no study"):
        bind_study(recipe, tmp_path / "other")
