"""One whole evaluation on tiny untrained models, for every test that reads its result."""

import shutil
from pathlib import Path

import pytest
import torch

from pdt.evaluation.generate.runs import Runs
from pdt.records.batch import RecordShards
from tests.support.evaluations import (
    Ran,
    chronicle_shards,
    judged_exactly,
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
    runs = Runs(corpus, small_models(), small_settings(corpus.config))
    raw = judged_exactly(runs)
    out = tmp_path_factory.mktemp("result") / "out"
    return raw, write_small(out, runs, raw), out


@pytest.fixture
def copy(ran: Ran, tmp_path: Path) -> Path:
    """A copy of the result directory that a test may damage."""
    return Path(shutil.copytree(ran[2], tmp_path / "copy"))
