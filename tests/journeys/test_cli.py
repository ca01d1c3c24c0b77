"""The command line as a user meets it."""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from pdt.model.store import load_model
from pdt.terms import NotesCondition
from tests.support.commands import run_here as pdt
from tests.support.families import make_plain, save_plain


def test_the_command_is_a_process_with_an_exit_code(tmp_path: Path) -> None:
    """The others call it in this process, which does not load torch anew each time."""
    alone, here = (
        run("census", "--set", "lanes.cuont=3", cwd=tmp_path) for run in (in_a_process, pdt)
    )
    assert alone.returncode == here.returncode == 2
    assert alone.stderr == here.stderr != ""
    assert alone.stdout == here.stdout == ""


def in_a_process(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pdt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_help_does_not_import_torch() -> None:
    code = "import sys; from pdt.cli import app; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_version_is_the_installed_packages() -> None:
    assert pdt("--version").stdout == f"pdt {metadata.version('pdt')}\n"


def test_the_canonical_census_is_printed_to_the_digit_within_a_gigabyte() -> None:
    run = pdt("census", "--preset", "canonical", "--json")
    peak = (  # a parent of its own: this process has had larger children
        "import resource, subprocess, sys; subprocess.run([sys.executable, '-m', 'pdt', 'census'],"
        " stdout=subprocess.DEVNULL, check=True);"
        " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    used = subprocess.run([sys.executable, "-c", peak], capture_output=True, text=True, check=True)
    assert int(used.stdout) < 1_000_000  # kilobytes
    census = json.loads(run.stdout)
    assert census["total"] == 6_528_940_585
    assert census["traffic"]["ceiling"] == 1.8724
    table = pdt("census", "--prompt-tokens", "6000", "--gpus", "8").stdout
    assert "2,811,298,304" in table
    assert "1.87×" in table
    assert "AdamW" in table


def test_from_a_decoder_on_disk_to_a_checked_model(tmp_path: Path) -> None:
    trunk = save_plain(make_plain("qwen3, untied"), tmp_path / "trunk")
    assert "family: qwen3" in pdt("trunk", "show", "trunk", cwd=tmp_path).stdout
    made = pdt(
        "model", "init", "trunk", "--preset", "tiny", "--set", "lanes.fork_layer=2",
        "--out", "model", cwd=tmp_path,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == "model"
    shown = json.loads(pdt("model", "show", "model", "--json", cwd=tmp_path).stdout)
    assert shown["fork_layer"] == 2
    assert shown["trunk"]["source"] == str(trunk)
    again = pdt("model", "init", "trunk", "--preset", "tiny", "--out", "model", cwd=tmp_path)
    assert again.returncode == 2
    assert "not empty" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["census", "--preset", "nope"], 2, "no preset 'nope'"),
        (["census", "--set", "lanes.cuont=3"], 2, "did you mean count?"),
        (["census", "--prompt-tokens", "20000"], 2, "16384"),
        (["model", "show", "."], 2, "is not a pdt model"),
        (["trunk", "show", "/no/such/place"], 2, "no file"),
        (["bench", "grouped", "huge"], 2, "no subject 'huge'"),
        (["bench", "latency", "--drafts", "8"], 2, "give --drafts and --text"),
    ],
)
def test_a_wrong_call_is_one_message_and_no_traceback(
    arguments: list[str], code: int, says: str, tmp_path: Path
) -> None:
    run = pdt(*arguments, cwd=tmp_path)
    assert run.returncode == code
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_an_unsupported_decoder_is_a_broken_contract(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_moe"}')
    run = pdt("trunk", "show", str(tmp_path))
    assert run.returncode == 3
    assert "mixture of experts" in run.stderr


def test_a_packed_model_needs_nothing_else(tmp_path: Path) -> None:
    save_plain(make_plain("qwen3, untied"), tmp_path / "trunk")
    states = f"training.trunk_cache.directory={tmp_path / 'states'}"
    settings = ("--preset", "tiny", "--set", "lanes.fork_layer=2", "--set", states)
    assert pdt("model", "init", "trunk", *settings, "--out", "m", cwd=tmp_path).returncode == 0
    packed = pdt("model", "pack", "m", "--out", "whole", cwd=tmp_path)
    assert packed.returncode == 0, packed.stderr
    before = {path.name for path in (tmp_path / "m").iterdir()}
    (tmp_path / "trunk").rename(tmp_path / "gone")
    shown = json.loads(pdt("model", "show", "whole", "--json", cwd=tmp_path).stdout)
    assert shown["trunk"]["source"] is None
    for name in ("config.json", "manifest.json"):
        assert str(tmp_path) in (tmp_path / "m" / name).read_text()
        assert str(tmp_path) not in (tmp_path / "whole" / name).read_text()
    assert {path.name for path in (tmp_path / "whole").iterdir()} >= before | {"trunk.safetensors"}
    again = pdt("model", "pack", "m", "--out", "whole", cwd=tmp_path)
    assert again.returncode == 2 and "exists" in again.stderr


def test_two_packed_models_may_share_a_trunk(tmp_path: Path) -> None:
    save_plain(make_plain("qwen3, untied"), tmp_path / "trunk")
    settings = ("--preset", "tiny", "--set", "lanes.fork_layer=2")
    for name, more in (("bus", ()), ("control", ("--set", "notes.condition=self_only"))):
        made = pdt("model", "init", "trunk", *settings, *more, "--out", name, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
    assert pdt("model", "pack", "bus", "--half", "--out", "a", cwd=tmp_path).returncode == 0
    shared = ("--trunk-of", str(tmp_path / "a"), "--out", "b")
    unequal = pdt("model", "pack", "control", *shared, cwd=tmp_path)
    assert unequal.returncode == 2 and "without --trunk-of" in unequal.stderr
    packed = pdt("model", "pack", "control", "--half", *shared, cwd=tmp_path)
    assert packed.returncode == 0, packed.stderr
    assert not (tmp_path / "b" / "trunk.safetensors").exists()
    bare = pdt("model", "pack", "bus", "--trunk-of", "b", "--out", "c", cwd=tmp_path)
    assert bare.returncode == 2 and "no trunk of its own" in bare.stderr
    (tmp_path / "trunk").rename(tmp_path / "gone")
    (tmp_path / "moved").mkdir()
    bus, control = (
        load_model((tmp_path / name).rename(tmp_path / "moved" / name)) for name in ("a", "b")
    )
    assert control.config.notes.condition is NotesCondition.SELF_ONLY
    for (name, one), (_, other) in zip(
        bus.trunk.named_parameters(), control.trunk.named_parameters(), strict=True
    ):
        assert torch.equal(one, other), name
