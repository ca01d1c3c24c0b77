"""Accidents a user meets: one message, the right exit code, and nothing lost that was paid for."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import pdt.cli
from pdt.errors import CRASHED
from pdt.extras import extras_with
from pdt.lock import hold_run
from pdt.model.build import random_model
from pdt.training.loop import Trainer
from tests.support.commands import run_here
from tests.support.training_samples import corpus


class Command:
    """The `pdt` command in this process, with what it said."""

    out = err = ""

    def __call__(self, *arguments: object) -> int:
        done = run_here(*arguments)
        self.out, self.err = done.stdout, done.stderr
        return done.returncode


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command()


@contextmanager
def small_disk(most: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: to a writer, the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


BOTH = ("--trace", "t.json", "--html", "p.html")
SHORT = ("--request", "Tell it.", "--model", "nano", "--max-tokens", "3")


def test_a_trace_that_cannot_be_written_costs_no_text(command: Command, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("The siege of Vell lasted for the winter.")
    assert command("generate", "source.txt", *SHORT, "--trace", "nowhere/t.json") == 2
    assert "nowhere is not a directory that can be written" in command.err
    assert command.out == ""
    with small_disk(1000):
        assert command("generate", "source.txt", *SHORT, "--trace", "t.json", "--json") == 3
        assert command("generate", "source.txt", *SHORT, "--html", "p.html", "--json") == 3
        assert command("generate", "source.txt", *SHORT, *BOTH, "--json") == 3
    assert "t.json could not be written" in command.err
    assert "p.html could not be written" in command.err
    assert json.loads(command.out)["documents"][0]["text"]
    assert [path.name for path in tmp_path.iterdir()] == ["source.txt"]
    assert command("generate", "source.txt", *SHORT, "--trace", "x", "--html", "./x") == 2
    assert "Give each a file of its own" in command.err


def test_an_edit_that_never_began_is_said(command: Command, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("The siege of Vell lasted for the winter.")
    assert command("generate", "source.txt", *SHORT, "--intervene", "zero-plan@7") == 0
    assert "no edit from block 7 on: the text ends in block 0" in command.err
    assert command("generate", "source.txt", *SHORT, "--intervene", "zero-plan") == 0
    assert "no edit" not in command.err


def test_what_was_asked_for_and_is_not_there_is_named(command: Command, tmp_path: Path) -> None:
    assert command("generate", "nowhere.txt", "--model", "nano") == 2
    assert "nowhere.txt is not a file" in command.err
    assert command("chronicle", "write", "--count", 1, "--out", "one") == 0
    assert command("generate", "one", "--model", "nano") == 2
    assert "one is a directory. Give one/documents.jsonl." in command.err
    assert command("generate", "one/documents.jsonl", "--model", "nano", "--record", "x") == 2
    assert "holds no record 'x'.\nGive one that it has, such as chronicle" in command.err
    (tmp_path / "source.txt").write_text("The siege of Vell lasted for the winter.")
    assert command("generate", "source.txt", *SHORT, "--intervene", "remove-note") == 2
    assert "of the form remove-note:PRODUCER@BLOCK (that lane's note" in command.err
    assert command("generate", "source.txt", *SHORT, "--trace", "t.json") == 0
    draw = ("trace", "draw", "t.json", "--model", "nano", "--svg", "x.svg", "--mark")
    assert command(*draw, "Nobody") == 0
    assert command.err == "Note: no lane wrote Nobody.\n"


@pytest.mark.parametrize(
    ("place", "remedy"), [("nowhere/x.svg", "Make the directory"), ("file/x.svg", "in the way")]
)
def test_a_file_that_cannot_be_made_is_named_as_the_user_named_it(
    command: Command, tmp_path: Path, place: str, remedy: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "source.txt").write_text("The siege of Vell lasted for the winter.")
    assert command("generate", "source.txt", *SHORT, "--trace", "t.json") == 0
    assert command("trace", "draw", "t.json", "--model", "nano", "--svg", place) == 3
    assert command.err.count("\n") == 2
    assert f": {place}\n" in command.err
    assert remedy in command.err


def test_a_full_disk_names_the_output_that_did_not_fit(command: Command, tmp_path: Path) -> None:
    with small_disk(2000):
        assert command("chronicle", "write", "--count", 20, "--out", "corpus") == 3
    assert command.err == "OSError: File too large: corpus\nFree some space, then run it again.\n"
    assert not list(tmp_path.iterdir())


def test_a_directory_in_the_way_does_not_take_a_packaged_models_name(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "nano").mkdir()
    assert command("model", "show", "nano", "--json") == 0
    assert json.loads(command.out)["fork_layer"] == 4
    assert "Note: nano is the model of that name in the package" in command.err
    assert command("model", "show", "./nano") == 2
    assert "nano is not a pdt model" in command.err
    (tmp_path / "nano").rmdir()
    assert command("model", "show", "nano") == 0
    assert command.err == ""


def test_a_full_disk_ends_a_compile_in_one_message_and_leaves_nothing(
    command: Command, tmp_path: Path
) -> None:
    assert command("chronicle", "write", "--count", 2, "--out", "corpus") == 0
    with small_disk(4000):
        assert command("record", "compile", "corpus", "--preset", "nano", "--out", "records") == 3
    assert command.err.count("\n") == 2
    assert "records could not be written" in command.err
    assert not (tmp_path / "records").exists()


def test_two_processes_never_build_one_corpus(command: Command, tmp_path: Path) -> None:
    assert command("chronicle", "write", "--count", 2, "--bundles", "--out", "corpus") == 0
    build = ("corpus", "build", "corpus", "--out", "built")
    (tmp_path / "built").mkdir()
    with hold_run(tmp_path / "built"):
        assert command(*build, "--resume") == 2
    assert "Another process is building a corpus in built" in command.err
    assert command(*build, "--resume") == 0
    assert "run.lock" not in (tmp_path / "built/manifest.json").read_text()


def test_a_run_killed_before_its_first_checkpoint_begins_again(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "corpus").mkdir()
    shards, config = corpus(tmp_path / "corpus")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    Trainer(random_model(config, seed=0), shards, tmp_path / "run", inputs={"seed": 0})
    assert not list((tmp_path / "run").glob("step-*"))
    train = ("train", "run", shards.directory, "--config", "config.yaml", "--out", "run")
    assert command(*train, "--resume", "--until", 1, "--seed", 7) == 3
    assert "has no checkpoint yet, and was begun another way" in command.err
    assert command(*train, "--resume", "--until", 1) == 0
    assert command(*train, "--until", 1) == 2
    assert (tmp_path / "run/step-000001").is_dir()


def test_a_crash_has_an_exit_code_of_its_own(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdt.cli, "app", lambda: 1 // 0)
    assert command() == CRASHED == 70
    assert "pdt has crashed" in command.err


def started(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in which an import does something before `pdt` runs."""
    hook = (
        "import os, signal, sys\n"
        "class Hook:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        {code}\n"
        "sys.meta_path.insert(0, Hook())\n"
        f"sys.argv = ['pdt', *{arguments!r}]\n"
        "from pdt.__main__ import main\n"
        "main()\n"
    )
    return subprocess.run([sys.executable, "-c", hook], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("selectolax", ("corpus", "build", "x", "--out", "y"), "sources"),
        ("fastapi", ("serve",), "serve"),
    ],
)
def test_without_an_extra_a_command_says_what_to_install(
    module: str, arguments: tuple[str, ...], extra: str
) -> None:
    missing = f"if name == {module!r}: raise ModuleNotFoundError(name)"
    run = started(missing, *arguments)
    assert run.returncode == 2
    assert f"pip install 'pdt[{extra}]'" in run.stderr


def test_a_library_that_only_an_extra_brings_is_no_crash_wherever_it_is_missed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missed() -> None:
        raise ModuleNotFoundError("No module named 'openai'", name="openai.types")

    monkeypatch.setattr(pdt.cli, "app", missed)
    assert command() == 2
    assert command.err.endswith("Install it: pip install 'pdt[teacher]'.\n")
    assert extras_with("sentence_transformers") == ["encoders"]
    assert {"audit", "serve"} <= set(extras_with("fastapi"))
    assert extras_with("pytest") == extras_with("pdt.nothing") == []


def test_ctrl_c_while_modules_load_ends_in_silence() -> None:
    run = started("name == 'typer' and os.kill(os.getpid(), signal.SIGINT)", "--help")
    assert run.returncode == -2
    assert run.stderr == ""
