"""An evaluation whose batches are shared out gives what one process gives."""

from pathlib import Path

import pytest

from pdt.evaluation.conditions import Weights
from pdt.evaluation.exact import ExactScreen
from pdt.evaluation.helpers import Inputs, helped
from pdt.evaluation.parts import Parts
from pdt.evaluation.results import EvaluationSettings, Raw
from pdt.evaluation.run import Evaluation
from pdt.model.store import load_model, save_model
from pdt.records.batch import RecordShards
from tests.evaluations import small_models, small_settings

ALL = ["batch-0000", "batch-0001", "coined-0000"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[Weights, Path]:
    directory = tmp_path_factory.mktemp("models")
    for weights, model in small_models().items():
        save_model(model, directory / weights.value, with_trunk=True)
    return {weights: directory / weights.value for weights in Weights}


@pytest.fixture
def settings(corpus: RecordShards) -> EvaluationSettings:
    chosen = ("oracle", "learned", "self_only")
    return small_settings(corpus.config, batch=2, conditions=chosen)


def evaluate(
    inputs: Inputs, corpus: RecordShards, workers: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Raw, list[str]]:
    """The raw lines, and which batches this process measured itself."""
    made, plain = list[str](), Parts.write

    def write(parts: Parts, name: str, raw: Raw) -> None:
        made.append(name)
        plain(parts, name, raw)

    loaded = {weights: load_model(path) for weights, path in inputs.models.items()}
    evaluation = Evaluation(corpus, loaded, inputs.settings, {"exact": ExactScreen()})
    evaluation.parts, evaluation.workers = Parts(inputs.parts), workers
    with monkeypatch.context() as patched, helped(inputs, workers) as evaluation.wait:
        patched.setattr(Parts, "write", write)
        return evaluation.run(*evaluation.batches()), made


def test_shared_batches_are_measured_once_and_to_the_same_numbers(
    corpus: RecordShards,
    models: dict[Weights, Path],
    settings: EvaluationSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def run(name: str, workers: int, records: Path = corpus.directory) -> tuple[Raw, list[str]]:
        parts = tmp_path / name
        parts.mkdir()
        inputs = Inputs(records, corpus.split, models, settings, parts)
        return evaluate(inputs, corpus, workers, monkeypatch)

    alone, made = run("alone", 1)
    assert made == ALL
    shared, made = run("shared", 2)
    assert made == ["batch-0000", "coined-0000"]  # the helper has measured the other
    capfd.readouterr()
    left_alone, made = run("left alone", 2, tmp_path / "nowhere")  # the helper cannot begin
    assert made == ["batch-0000", "coined-0000", "batch-0001"]
    assert "nowhere" in capfd.readouterr().err
    for kind in ("documents", "written", "likelihoods", "coined", "judgments"):
        assert getattr(shared, kind) == getattr(alone, kind) == getattr(left_alone, kind), kind
