"""What two ranks must agree on, run by both under torchrun (tests/journeys/test_ranks.py)."""

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.tensor import Shard, distribute_tensor

from pdt.errors import Followed, PdtError, TrainingStopped
from pdt.model.pieces import lay_out, read_rows, write_rows, write_tensors
from pdt.objective.total import total_loss
from pdt.training import engine
from pdt.training.loop import Trainer
from pdt.training.optimizer import local
from pdt.training.ranks import Ranks


def fail_on_one(ranks: Ranks, problem: Exception) -> None:
    with ranks.together():
        if ranks.rank == 1:
            raise problem


def stops_together(ranks: Ranks) -> None:
    with ranks.together():
        pass
    for problem, kind in ((PdtError("bad"), PdtError), (OSError(28, "disk full"), OSError)):
        with pytest.raises(kind if ranks.first else Followed) as stop:
            fail_on_one(ranks, problem)
        if ranks.first:
            assert "On rank 1" in str(stop.value)


def sums_what_any_rank_has(ranks: Ranks) -> None:
    mine = {"a": 1.0 + ranks.rank} | ({"b": 5.0} if ranks.first else {})
    assert ranks.sum_named(mine, ["a", "b", "c"]) == {"a": 3.0, "b": 5.0}


def commits_only_what_all_have_written(ranks: Ranks, place: Path) -> None:
    with ranks.new_directory(place / "whole") as work:
        (work / str(ranks.rank)).touch()
    assert sorted(p.name for p in (place / "whole").iterdir()) == ["0", "1"]
    with pytest.raises((OSError, Followed)), ranks.new_directory(place / "half"):
        fail_on_one(ranks, OSError(28, "disk full"))
    ranks.sum(torch.ones(1))
    assert not (place / "half").exists()
    assert not list(place.glob(".half*"))


def writes_the_file_of_one_process(ranks: Ranks, place: Path) -> None:
    mesh = ranks.mesh()
    generator = torch.Generator().manual_seed(0)
    whole = {
        "bank": torch.randn(3, 4, 5, generator=generator),
        "uneven": torch.randn(3, 2, generator=generator),
        "short": torch.randn(1, 2, generator=generator),
        "gate": torch.tensor(2.0),
    }
    axes = {"bank": 1, "uneven": 0, "short": 0}
    sharded = {
        name: distribute_tensor(value, mesh, [Shard(axes[name])]) if name in axes else value
        for name, value in whole.items()
    }
    if ranks.first:
        write_tensors(place / "one", whole)
        lay_out(place / "two", sharded)
    ranks.sum(torch.ones(1))
    write_rows(place / "two", sharded, first=ranks.first)
    ranks.sum(torch.ones(1))
    assert (place / "one").read_bytes() == (place / "two").read_bytes()
    assert torch.equal(load_file(place / "two")["bank"], whole["bank"])
    for name, rows in read_rows(place / "one", sharded).items():
        mine = sharded[name]
        assert torch.equal(local(rows), local(mine)), name


def a_loss_that_is_not_finite_on_one_rank_stops_both(ranks: Ranks, place: Path) -> None:
    from pdt.model.build import random_model
    from tests.support.training_samples import corpus

    mine = place / f"corpus-{ranks.rank}"
    mine.mkdir()
    shards, config = corpus(mine, block_tokens=32)
    trainer = Trainer(random_model(config, seed=0), shards, place / "run", ranks=ranks)
    patch = pytest.MonkeyPatch()
    if ranks.rank == 1:
        patch.setattr(engine, "total_loss", lambda *rest: total_loss(*rest) * torch.nan)
    with pytest.raises(PdtError if ranks.first else Followed) as stop:
        trainer.train()
    assert not isinstance(stop.value, TrainingStopped)
    if ranks.first:
        assert "On rank 1: Training stopped at step 0: the loss of vell-" in str(stop.value)


if __name__ == "__main__":
    ranks, place = Ranks(), Path(sys.argv[1])
    stops_together(ranks)
    sums_what_any_rank_has(ranks)
    commits_only_what_all_have_written(ranks, place)
    writes_the_file_of_one_process(ranks, place)
    a_loss_that_is_not_finite_on_one_rank_stops_both(ranks, place)
    sys.stdout.write(f"checked {ranks.rank}\n")
    ranks.leave()
    raise AssertionError("a rank that has left goes on")
