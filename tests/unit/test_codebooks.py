"""Codes taken from what the untrained lanes write, before the first step."""

from pathlib import Path

import pytest
import torch

from pdt.config import edit_config
from pdt.errors import UsageError
from pdt.model.build import random_model
from pdt.training import codebooks
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


def test_no_code_is_taken_for_a_run_that_trains_no_note_writer(tmp_path: Path) -> None:
    """It would roll out documents for minutes, for notes that nobody writes yet."""
    stage = "[{first_step: 0, plan: oracle, trains: [lanes, plan_kv]}]"
    dials = ("notes.codebook_start=states", f"training.stages={stage}")
    shards, config = corpus(tmp_path, *dials)
    model = random_model(config, seed=0)
    drawn = model.note_writer.vq.codebooks.clone()
    Trainer(model, shards, tmp_path / "run")
    assert torch.equal(model.note_writer.vq.codebooks, drawn)


def test_a_corpus_with_fewer_notes_than_codes_is_refused(tmp_path: Path) -> None:
    shards, config = corpus(tmp_path, documents=1)
    many = edit_config(config, ["notes.codes=512"], where="test")
    with pytest.raises(UsageError, match="a codebook has 512 codes"):
        take_codes(random_model(many, seed=0), shards, 0)


def test_the_start_of_the_codes_says_how_far_it_is_and_ends_after_many_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a note for every code, and documents enough, it does not wait for twice as many."""
    shards, config = corpus(tmp_path, documents=24)

    def heard(codes: int) -> list[str]:
        said: list[str] = []
        asked = edit_config(config, [f"notes.codes={codes}"], where="test")
        take_codes(random_model(asked, seed=0), shards, 0, telling=said.append)
        return said

    first = heard(4)[0]
    notes = int(first.removeprefix("the first codes: ").split()[0])
    assert first == f"the first codes: {notes} of 8 notes, 8 documents"
    assert len(heard(notes)) == 2
    monkeypatch.setattr(codebooks, "MOST_DOCUMENTS", 8)
    assert len(heard(notes)) == 1
    assert len(heard(notes + 1)) == 2, "a code needs a note of its own"
