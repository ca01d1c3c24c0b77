"""Kept trunk states are the states: the same bits, for any batch and any lanes, or absent."""

import json
import os
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from pdt.config import PdtConfig, edit_config
from pdt.errors import UsageError
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.model.trunk import Trunk
from pdt.records.batch import RecordBatch, RecordShards
from pdt.study.states import keep_states, read_mark
from pdt.terms import Loss, PlanCondition
from pdt.training.assignment import assign_lanes
from pdt.training.loop import Trainer
from pdt.training.losses import compute_losses
from pdt.training.trunk_cache import TrunkCache
from pdt.training.trunk_states import TrunkReader
from pdt.training.watch.metrics import METRICS
from tests.conftest import open_model
from tests.support.training_samples import corpus

Records = tuple[RecordShards, PdtConfig]
PLENTY = 1 << 30


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return corpus(tmp_path_factory.mktemp("corpus"), documents=3)


@pytest.fixture(scope="module")
def model(records: Records) -> ParallelDecoder:
    return open_model(records[1])


@pytest.fixture
def batch(records: Records) -> RecordBatch:
    return next(iter(records[0].batches(2)))


def reader(model: ParallelDecoder, directory: Path, max_bytes: int = PLENTY) -> TrunkReader:
    return TrunkReader(model, TrunkCache(directory, max_bytes, model))


def cache_of(trunk: TrunkReader) -> TrunkCache:
    assert trunk.cache is not None
    return trunk.cache


def losses_and_gradients(
    model: ParallelDecoder, batch: RecordBatch, trunk: TrunkReader | None
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    model.zero_grad(set_to_none=True)
    parts = compute_losses(model, batch, PlanCondition.LEARNED, list(Loss), trunk).parts
    torch.stack([parts[loss] for loss in Loss]).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return [part.detach() for part in parts.values()], gradients


@pytest.mark.paper("§6")
def test_losses_and_gradients_are_the_same_bits_with_and_without_the_cache(
    model: ParallelDecoder, batch: RecordBatch, tmp_path: Path
) -> None:
    plain = losses_and_gradients(model, batch, None)
    trunk = reader(model, tmp_path)
    for kept in (0, 2):
        for ours, theirs in zip(plain, losses_and_gradients(model, batch, trunk), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
        assert (cache_of(trunk).hits, cache_of(trunk).misses) == (kept, 2)


@pytest.mark.paper("§6")
def test_nothing_below_the_fork_runs_for_kept_documents_on_whatever_lanes(
    model: ParallelDecoder, batch: RecordBatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = reader(model, tmp_path).read(batch, with_targets=True)

    def runs(*rest: object) -> None:
        raise AssertionError("the trunk ran")

    monkeypatch.setattr(Trunk, "forward", runs)
    moved = assign_lanes(batch, torch.tensor([[2, 0, 1], [1, 0, 2]]))
    kept = reader(model, tmp_path).read(moved, with_targets=True)
    assert torch.equal(kept.prompt.h_BTD, fresh.prompt.h_BTD)
    assert kept.fork_BKTD is not None and fresh.fork_BKTD is not None
    for document, lanes in enumerate([[2, 0, 1], [1, 0, 2]]):
        assert torch.equal(kept.fork_BKTD[document, lanes], fresh.fork_BKTD[document])
    with pytest.raises(AssertionError, match="the trunk ran"):
        TrunkReader(model).read(batch, with_targets=True)


@pytest.mark.paper("§6")
def test_a_documents_states_do_not_depend_on_the_batch_around_it(
    model: ParallelDecoder, records: Records
) -> None:
    together = TrunkReader(model).read(next(iter(records[0].batches(3))), with_targets=True)
    for row, alone in enumerate(records[0].batches(1)):
        states = TrunkReader(model).read(alone, with_targets=True)
        S, T = states.prompt.h_BTD.shape[1], alone.section_tokens_BKT.shape[2]
        assert torch.equal(together.prompt.h_BTD[row, :S], states.prompt.h_BTD[0])
        assert together.fork_BKTD is not None and states.fork_BKTD is not None
        assert torch.equal(together.fork_BKTD[row, :, :T], states.fork_BKTD[0])


def test_states_are_those_of_the_prompt_followed_by_the_section(
    model: ParallelDecoder, batch: RecordBatch
) -> None:
    states = TrunkReader(model).read(batch, with_targets=True)
    assert states.fork_BKTD is not None
    prompt = batch.prompt_tokens_BS[1][batch.prompt_valid_BS[1]]
    section = batch.section_tokens_BKT[1, 2][batch.token_valid_BKT[1, 2]]
    whole = model.read_prompt(torch.cat([prompt, section])[None]).h_BTD[0]
    ours = torch.cat(
        [states.prompt.h_BTD[1, : len(prompt)], states.fork_BKTD[1, 2, : len(section)]]
    )
    torch.testing.assert_close(ours, whole, atol=1e-5, rtol=1e-5)


def other_trunk(config: PdtConfig) -> ParallelDecoder:
    return random_model(config, seed=5)


def other_fork(config: PdtConfig) -> ParallelDecoder:
    return random_model(edit_config(config, ["lanes.fork_layer=1"], where="test"), seed=1)


def other_rotary(config: PdtConfig) -> ParallelDecoder:
    edit = ["trunk.shape.rope.theta=500.0"]
    return random_model(edit_config(config, edit, where="test"), seed=1)


@pytest.mark.parametrize("other", [other_trunk, other_fork, other_rotary])
def test_another_trunk_or_fork_finds_nothing(
    model: ParallelDecoder,
    records: Records,
    batch: RecordBatch,
    tmp_path: Path,
    other: Callable[[PdtConfig], ParallelDecoder],
) -> None:
    reader(model, tmp_path).read(batch, with_targets=True)
    stranger = reader(other(records[1]), tmp_path)
    stranger.read(batch, with_targets=True)
    assert cache_of(stranger).hits == 0


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
def test_a_damaged_file_is_computed_again_and_counted(
    model: ParallelDecoder, batch: RecordBatch, tmp_path: Path, damage: str
) -> None:
    first = reader(model, tmp_path).read(batch, with_targets=True)
    file = next(tmp_path.glob("*/*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(
        bytes({"flipped": data, "truncated": data[:-40], "empty": bytearray()}[damage])
    )
    trunk = reader(model, tmp_path)
    again = trunk.read(batch, with_targets=True)
    assert first.fork_BKTD is not None and again.fork_BKTD is not None
    assert torch.equal(again.fork_BKTD, first.fork_BKTD)
    assert cache_of(trunk).damaged == 1 and "1 damaged" in cache_of(trunk).describe()
    healed = reader(model, tmp_path)
    healed.read(batch, with_targets=True)
    assert cache_of(healed).hits == 2 and cache_of(healed).damaged == 0


def test_at_its_limit_the_cache_stops_growing_and_says_so(
    model: ParallelDecoder, batch: RecordBatch, tmp_path: Path
) -> None:
    plain = losses_and_gradients(model, batch, None)[0]
    reader(model, tmp_path / "whole").read(batch, with_targets=True)
    sizes = sorted(p.stat().st_size for p in (tmp_path / "whole").glob("*/*"))
    trunk = reader(model, tmp_path / "small", max_bytes=sizes[-1] + 100)
    for _ in range(2):
        ours = losses_and_gradients(model, batch, trunk)[0]
        assert all(torch.equal(a, b) for a, b in zip(ours, plain, strict=True))
    cache = cache_of(trunk)
    assert "nothing more is added: it is full" in cache.describe()
    kept = [p.stat().st_size for p in (tmp_path / "small").glob("*/*")]
    assert len(kept) == 1 and sum(kept) == cache.bytes <= cache.max_bytes
    counted = cache.metrics()
    assert (counted["trunk_cache_hits"], counted["trunk_cache_closed"]) == (1, 1)
    assert cache.metrics()["trunk_cache_hits"] == 0


def test_a_directory_that_cannot_be_written_is_refused_before_the_first_step(
    model: ParallelDecoder, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(UsageError, match=r"training\.trunk_cache\.directory"):
        TrunkCache(tmp_path / "file", PLENTY, model)


def test_half_written_files_are_never_read_and_go_when_nobody_writes_them(
    model: ParallelDecoder, batch: RecordBatch, tmp_path: Path
) -> None:
    (tmp_path / "ab").mkdir()
    new, old = tmp_path / "ab/.x.1.partial", tmp_path / "ab/.x.2.partial"
    new.write_bytes(b"half")
    old.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert cache_of(reader(model, tmp_path)).bytes == 4
    assert new.exists() and not old.exists()


@pytest.mark.slow
def test_a_run_with_the_cache_logs_the_same_numbers_and_how_much_is_kept(
    records: Records, tmp_path: Path
) -> None:
    found = []
    for name, directory in (("without", "null"), ("with", str(tmp_path / "kept"))):
        edit = [f"training.trunk_cache.directory={directory}"]
        config = edit_config(records[1], edit, where="test")
        Trainer(random_model(config, seed=0), records[0], tmp_path / name).train(until=4)
        lines = (tmp_path / name / METRICS).read_text().splitlines()
        found.append([json.loads(line) for line in lines])
    for plain, cached in zip(*found, strict=True):
        extra = {key: cached.pop(key) for key in list(cached) if key.startswith("trunk_cache_")}
        for clock in ("seconds", "at"):
            del plain[clock], cached[clock]
        assert cached == plain
        assert extra["trunk_cache_hits"] + extra["trunk_cache_misses"] == 2
    assert extra["trunk_cache_bytes"] > 0 and extra["trunk_cache_hits"] == 2
    # Where states are kept is no part of what a checkpoint is bound to.
    moved = edit_config(config, ["training.trunk_cache.directory=null"], where="test")
    assert Trainer.resume(records[0], tmp_path / "with", moved).progress.step == 4


def _fill(directory: Path, config: PdtConfig, seed: int) -> None:
    torch.set_num_threads(1)
    cache = TrunkCache(directory, PLENTY, random_model(config, seed=0))
    draw = torch.Generator().manual_seed(7)  # all processes write the same documents
    for document in range(20):
        states = torch.randn(50, 32, generator=draw)
        cache.store(cache.key([[document]]), states, states * 2)
        kept = cache.load(cache.key([[document]]), with_targets=True)
        assert kept is not None and torch.equal(kept[0], states)


@pytest.mark.slow
def test_two_processes_share_a_directory(records: Records, tmp_path: Path) -> None:
    context = get_context("spawn")
    workers = [context.Process(target=_fill, args=(tmp_path, records[1], n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(list(tmp_path.glob("*/*.safetensors"))) == 20
    assert not list(tmp_path.glob("*/.*"))


@pytest.mark.paper("§3.1")
def test_documents_shared_out_beforehand_are_all_found_by_a_run(
    records: Records, model: ParallelDecoder, tmp_path: Path
) -> None:
    shards = records[0]
    for part, documents in ((1, 2), (2, 1)):
        cache = cache_of(reader(model, tmp_path))
        assert list(keep_states(model, shards, cache, part=part, parts=2))[-1] == documents
        assert cache.hits + cache.misses == documents
        assert json.loads(read_mark(tmp_path, part, 2).read_text()) == {
            "records": shards.digest,
            "documents": documents,
        }
    run = reader(model, tmp_path)
    for batch in shards.batches(2, seed=0):
        run.read(batch, with_targets=True)
    assert (cache_of(run).hits, cache_of(run).misses) == (len(shards), 0)


def test_a_full_cache_ends_the_reading(
    records: Records, model: ParallelDecoder, tmp_path: Path
) -> None:
    cache = cache_of(reader(model, tmp_path, max_bytes=10))
    assert list(keep_states(model, records[0], cache, part=1, parts=1)) == [1]
    assert json.loads(read_mark(tmp_path, 1, 1).read_text())["documents"] == 1
    assert "it is full" in cache.describe()
