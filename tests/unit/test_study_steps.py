"""The study as commands: in order, skipped when done, stopped at a failure, bound to a recipe."""

import io
import os
import signal
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from pdt.errors import BindingMismatch, PdtError, UsageError
from pdt.evaluation.protocol.conditions import GENERATED, HARDER
from pdt.evaluation.protocol.evidence_gates import registered_questions
from pdt.study.recipe import Recipe, load_recipe
from pdt.study.run import Study, bind_study, check_given
from pdt.study.steps import Step, steps_of
from tests.conftest import ROOT
from tests.support.commands import run_here


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


def test_lanes_that_shared_a_stack_part_before_the_phase_in_which_they_do_not() -> None:
    tree = load_recipe("nano").model_dump()
    together = {"records": "train", "settings": ["training.scale=0.5"], "together": True}
    apart = {"records": "train"}
    phases = {"together": together, "apart": apart}
    recipe = Recipe.model_validate(tree | {"phases": phases})
    steps = steps_of(recipe, Path("study"), seeds=1, stories=Path("data"))
    bus = [s for s in steps if s.name.startswith("seed 0 bus")]
    assert [s.name.split()[-1] for s in bus] == [
        "start", "drill", "together", "parted", "apart", "model",
    ]  # fmt: skip
    shares = ["lanes.shared=true" in s.command for s in bus]
    assert shares == [True, False, True, False, False, False]
    for before, step in pairwise(bus):
        assert str(before.result) in step.command and before.name in step.after
    with pytest.raises(ValueError, match="a stack of its own"):
        Recipe.model_validate(tree | {"phases": {"together": together}})


def test_what_is_trained_before_notes_is_trained_once_for_bus_and_control() -> None:
    recipe = load_recipe("nano-2", ["training.dtype=float32"])
    steps = steps_of(recipe, Path("study"), seeds=2, stories=Path("data"))
    names = [step.name for step in steps]
    for place, step in enumerate(steps):
        assert set(step.after) <= set(names[:place])
    for seed in (0, 1):
        (*_, common) = (s for s in steps if s.name.startswith(f"seed {seed} no_dynamic"))
        starts = [
            s for s in steps if s.command[:2] == ("model", "notes") and common.name in s.after
        ]
        assert [str(common.result) in start.command for start in starts] == [True, True]
        for condition, start in zip(("bus", "self_only"), starts, strict=True):
            own = [s.name.split()[-1] for s in steps if f"seed {seed} {condition} " in s.name]
            assert own == ["start", "drill", "parted", "apart", "joint", "model"]
            (drill,) = (s for s in steps if s.name == f"seed {seed} {condition} drill")
            assert str(start.result) in drill.command and "--beside" in drill.command
    runs = [step for step in steps if step.command[:2] == ("train", "run")]
    assert all("training.dtype=float32" in run.command for run in runs)
    assert not any("trunk_cache" in word for run in runs for word in run.command)
    late = dict(reversed(recipe.phases.items()))
    with pytest.raises(ValueError, match=r"before notes|and notes"):
        Recipe.model_validate(recipe.model_dump() | {"phases": late})


def test_a_recipe_without_a_beginning_is_refused() -> None:
    tree = load_recipe("nano").model_dump()
    for wrong in ({"drill": None}, {"begin": {"bus": "nano"}}):
        with pytest.raises(ValueError, match="begins with trunk and drill, with a pretrained"):
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


@pytest.mark.parametrize(
    ("seeds", "file", "words"),
    [
        (1, "README.md", "{} for one seed on two cores"),
        (1, "docs/manual.md", "{} for one seed on two cores"),
        (3, "docs/manual.md", "{} for three"),
    ],
)
def test_the_documents_name_the_time_that_the_command_names(
    seeds: int, file: str, words: str, tmp_path: Path
) -> None:
    asked = ("study", "nano", "--dry-run", "--seeds", seeds, "--workers", 2, "--out", tmp_path)
    last = run_here(*asked).stdout.splitlines()[-1]
    time = last.removeprefix("about ").removesuffix(" on 2 cores like the build machine's")
    assert words.format(time) in (ROOT / file).read_text(encoding="utf-8")


def test_a_study_of_real_prose_begins_with_a_decoder_as_it_is(tmp_path: Path) -> None:
    recipe = load_recipe("digest")
    steps = steps_of(recipe, tmp_path, seeds=1, stories=Path("none"))
    names = [step.name for step in steps]
    for place, step in enumerate(steps):
        assert set(step.after) <= set(names[:place])
    written = [step for step in steps if step.name.startswith("corpus ")]
    assert {step.command[:2] for step in written} == {("corpus", "write")}
    assert not {"trunk", "drill"} & {name.split()[-1] for name in names}
    (start,) = (step for step in steps if step.command[:2] == ("model", "init"))
    assert recipe.pretrained in start.command and start.after == ()
    for condition in ("bus", "self_only"):
        own = [s.name.split()[-1] for s in steps if f"seed 0 {condition} " in s.name]
        assert own == ["start", "parted", "apart", "joint", "model"]
    verdict = steps[-1].command
    assert verdict[verdict.index("--screen") + 1] == "prose"


def test_a_corpus_of_prose_that_was_killed_goes_on_with_its_parts(tmp_path: Path) -> None:
    steps = steps_of(load_recipe("digest"), tmp_path, seeds=1, stories=Path("none"))
    step = next(step for step in steps if step.name.startswith("corpus "))
    (tmp_path / "corpus" / "dealt" / "parts").mkdir(parents=True)
    assert step.arguments() == step.command  # nothing whole in it: begun again
    (tmp_path / "corpus" / "dealt" / "parts").mkdir(parents=True)
    (tmp_path / "corpus" / "dealt" / "parts" / "binding.json").touch()
    assert not step.done and step.arguments() == (*step.command, "--resume")


def test_a_study_says_what_must_be_there_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"SmolLM2.*texts, and nothing(.|\n)*make weights texts"):
        check_given(load_recipe("digest"))
    check_given(load_recipe("nano"))
