"""One whole evaluation on tiny untrained models, for every test that reads its result."""

import shutil
from pathlib import Path

import pytest
import torch

from pdt.evaluation.generate.run import Evaluation
from pdt.evaluation.screens.exact import ExactScreen
from pdt.records.batch import RecordShards
from tests.support.evaluations import (
    Ran,
    chronicle_shards,
    small_models,
    small_settings,
    write_small,
)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RecordShards:
    return chronicle_shards(tmp_path_factory.mktemp("corpus"), 4)[0]


@pytest.fixture(scope="session")
def ran(corpus: RecordShards, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    torch.manual_seed(0)
    evaluation = Evaluation(
        corpus, small_models(), small_settings(corpus.config), {"exact": ExactScreen()}
    )
    raw = evaluation.run(*evaluation.batches())
    out = tmp_path_factory.mktemp("result") / "out"
    return raw, write_small(out, evaluation), out


@pytest.fixture
def copy(ran: Ran, tmp_path: Path) -> Path:
    """A copy of the result directory that a test may damage."""
    return Path(shutil.copytree(ran[2], tmp_path / "copy"))
