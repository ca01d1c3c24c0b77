"""What a machine does once is done when a model is opened, and said; no generation pays for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import pdt
from pdt.generation.loop import start
from pdt.generation.settings import GenerationSettings
from pdt.model.kernels.build import library
from pdt.model.kernels.prepare import prepare
from pdt.tokenizer import StudentTokenizer
from tests.conftest import open_model
from tests.support.record_samples import train_tokenizer


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine that has compiled nothing, with a compiler that only notes how it is called."""
    log = tmp_path / "calls"
    log.touch()
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\ncase "$1" in --version) exit 0; esac\nexit 1\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    monkeypatch.setenv("PDT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PDT_KERNELS", raising=False)
    library.cache_clear()
    yield log
    library.cache_clear()


def test_kernels_are_compiled_when_a_model_is_opened_and_not_in_a_generations_time(
    calls: Path, tmp_path: Path
) -> None:
    model = open_model()
    file = train_tokenizer(tmp_path / "tokenizer.json")
    model.tokenizer = StudentTokenizer.from_file(file, eos=model.config.records.tokenizer.eos)
    pdt.save_model(model, tmp_path / "model", with_trunk=True)
    library.cache_clear()
    calls.write_text("")
    writer = pdt.Writer.load(tmp_path / "model")
    assert "-shared" in calls.read_text()
    calls.write_text("")
    list(start(writer.model, [[5, 6, 7]], GenerationSettings(max_tokens=4)).events())
    assert calls.read_text() == ""


def test_each_step_is_said_before_it_is_taken(calls: Path) -> None:
    said: list[str] = []

    def hear(step: str) -> None:
        said.append(f"{step}: {'-shared' in calls.read_text()}")

    prepare(say=hear)
    assert said == [
        "compiling the kernels for this machine, once: False",
        "measuring how this machine multiplies best, once: True",
    ]
