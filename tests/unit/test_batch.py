"""Shards as ragged torch batches."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from pdt.errors import BindingMismatch, UsageError
from pdt.records.batch import RecordBatch, RecordShards, collate
from pdt.records.corpus import compile_corpus
from pdt.records.shards import Shard
from pdt.terms import Split
from tests.support.record_samples import sample_config, train_tokenizer, write_documents


def ragged(number: int, data: dict) -> None:  # type: ignore[type-arg]
    """Every other document loses its dependencies and gains a sentence; one is for testing."""
    if number % 2:
        data["answer"]["dependencies"] = []
        for lane in (0, 1):
            data["answer"]["plans"][lane]["nodes"][1]["dependencies"] = []
        data["answer"]["sections"][1]["paragraphs"][1] += " Then it rained and rained for days."
    if number == 4:
        data["split"] = "test"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> RecordShards:
    path = tmp_path_factory.mktemp("corpus")
    config = sample_config(train_tokenizer(path / "t.json"))
    compile_corpus([write_documents(path / "in.jsonl", 20, edit=ragged)], path / "out", config)
    return RecordShards(path / "out")


def test_batches_pad_to_the_longest_document(shards: RecordShards) -> None:
    batch = next(iter(shards.batches(4)))
    rows = list(shards.rows())[:4]
    assert batch.section_tokens_BKT.shape[-1] == max(r["section_tokens_KT"].shape[1] for r in rows)
    for index, row in enumerate(rows):
        K, T = row["section_tokens_KT"].shape
        kept = batch.section_tokens_BKT[index, :K, :T]
        assert torch.equal(kept, torch.tensor(row["section_tokens_KT"]).long())
        assert (batch.section_tokens_BKT[index, :, T:] == -1).all()
    assert batch.edge_valid_BJ.any(dim=1).tolist() == [True, False, True, False]


def test_masks_say_what_is_valid(shards: RecordShards) -> None:
    batch = next(iter(shards.batches(4)))
    assert torch.equal(batch.token_valid_BKT.sum(-1), batch.section_lengths_BK)
    tau = shards.config.lanes.block_tokens
    assert torch.equal((batch.active_node_BKU >= 0).sum(-1), -(-batch.section_lengths_BK // tau))
    assert torch.equal((batch.role_BKUF >= 0).all(-1), batch.active_node_BKU >= 0)
    assert (batch.owner_lane_BF >= 0).all()
    assert batch.prompt_valid_BS.any(dim=1).all()
    assert batch.lane_at_position_BK.tolist() == [[2, 0, 1]] * 4


def test_every_record_comes_once(shards: RecordShards) -> None:
    names = [name for batch in shards.batches(3) for name in batch.record_ids]
    assert names == [f"vell-{n}" for n in range(20)]
    shuffled = [name for batch in shards.batches(3, seed=1) for name in batch.record_ids]
    again = [name for batch in shards.batches(3, seed=1) for name in batch.record_ids]
    assert shuffled == again != names
    assert sorted(shuffled) == sorted(names)


@pytest.mark.parametrize("skip", [0, 1, 3, 9, 19, 20, 25])
@pytest.mark.parametrize("split", [None, Split.TRAIN])
def test_a_shuffled_order_can_be_opened_at_any_place(
    shards: RecordShards, skip: int, split: Split | None
) -> None:
    these = RecordShards(shards.directory, split=split)
    whole = [name for batch in these.batches(1, seed=5) for name in batch.record_ids]
    rest = [name for batch in these.batches(1, seed=5, skip=skip) for name in batch.record_ids]
    assert len(whole) == len(these) == (20 if split is None else 19)
    assert rest == whole[skip:]


@pytest.mark.parametrize("skip", [0, 3, 6, 12, 18])
def test_batches_of_documents_about_as_long_hold_the_same_documents_and_less_padding(
    shards: RecordShards, skip: int
) -> None:
    by_chance = list(shards.batches(3, seed=5))
    alike = list(shards.batches(3, seed=5, alike=4))
    names = [name for batch in alike for name in batch.record_ids]
    for window in (slice(0, 12), slice(12, 20)):  # of four batches
        chance = [name for batch in by_chance for name in batch.record_ids][window]
        assert set(names[window]) == set(chance)
    padded = [sum(b.section_tokens_BKT.numel() for b in order) for order in (alike, by_chance)]
    assert padded[0] < padded[1]
    rest = shards.batches(3, seed=5, skip=skip, alike=4)
    assert [name for batch in rest for name in batch.record_ids] == names[skip:]


def test_what_lies_before_the_place_is_not_decoded(
    shards: RecordShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    decode = Shard.rows

    def watched(self: Shard, **how: Any) -> Any:
        read.append(self.path)
        return decode(self, **how)

    monkeypatch.setattr(Shard, "rows", watched)
    assert len(shards.shards) == 3
    assert len(list(shards.batches(1, seed=5, skip=19))) == 1
    assert len(read) == 1


def test_tokens_beyond_the_trunks_vocabulary_are_refused(shards: RecordShards) -> None:
    most = max(int(row["section_tokens_KT"].max()) for row in shards.rows())
    most = max(most, *(int(row["prompt_tokens_S"].max()) for row in shards.rows()))
    shards.require_vocabulary(most + 1)
    with pytest.raises(BindingMismatch, match=f"token id   records {most} "):
        shards.require_vocabulary(most)


def test_the_digest_of_a_corpus_is_of_its_records_and_not_of_its_place(
    shards: RecordShards, tmp_path: Path
) -> None:
    there = RecordShards(shutil.copytree(shards.directory, tmp_path / "there"))
    config = sample_config(train_tokenizer(tmp_path / "t.json"))
    compile_corpus([write_documents(tmp_path / "in.jsonl", 2)], tmp_path / "other", config)
    assert there.digest == shards.digest != RecordShards(tmp_path / "other").digest


def test_a_split_holds_only_its_own(shards: RecordShards) -> None:
    only = RecordShards(shards.directory, split=Split.TEST)
    assert [batch.record_ids for batch in only.batches(8)] == [("vell-4",)]


def test_tensors_have_the_types_training_wants(shards: RecordShards) -> None:
    batch: RecordBatch = collate(list(shards.rows())[:2])
    assert batch.section_tokens_BKT.dtype == torch.int64
    assert batch.node_valid_BKN.dtype == torch.bool
    assert batch.plan_targets_BKNP.dtype == torch.float32


def test_a_batch_of_nothing_is_refused(shards: RecordShards) -> None:
    with pytest.raises(UsageError):
        next(iter(shards.batches(0)))


def test_importing_the_reader_does_not_import_torch() -> None:
    import subprocess
    import sys

    code = "import sys, pdt.records.batch, pdt.cli; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
