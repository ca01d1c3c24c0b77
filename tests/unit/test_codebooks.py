"""Codes taken from what the untrained lanes write, before the first step."""

from pathlib import Path

import pytest
import torch

from pdt.config import edit_config
from pdt.errors import UsageError
from pdt.model.build import random_model
from pdt.training.codebooks import take_codes
from pdt.training.loop import Trainer
from tests.support.training_samples import corpus


def test_a_run_that_takes_its_codes_from_states_starts_with_written_vectors(
    tmp_path: Path,
) -> None:
    shards, config = corpus(tmp_path, "notes.codebook_start=states", "notes.writer_norm=true")
    drawn = random_model(config, seed=0).note_writer.vq.codebooks
    model, again = random_model(config, seed=0), random_model(config, seed=0)
    Trainer(model, shards, tmp_path / "run")
    taken = model.note_writer.vq.codebooks
    assert not torch.isclose(taken, drawn).all(-1).any()
    take_codes(again, shards, config.training.seed)
    assert torch.equal(again.note_writer.vq.codebooks, taken)


def test_a_corpus_with_fewer_notes_than_codes_is_refused(tmp_path: Path) -> None:
    shards, config = corpus(tmp_path, documents=1)
    many = edit_config(config, ["notes.codes=512"], where="test")
    with pytest.raises(UsageError, match="a codebook has 512 codes"):
        take_codes(random_model(many, seed=0), shards, 0)
