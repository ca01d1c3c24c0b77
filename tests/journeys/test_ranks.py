"""Two ranks are one run: the same losses, the same checkpoints, and they stop together."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pdt.config import PdtConfig, edit_config, load_config
from pdt.errors import UsageError
from pdt.model.build import random_model
from pdt.records.batch import RecordShards
from pdt.training.checkpoint import latest_checkpoint
from pdt.training.curriculum import apply_manifest, stages_of
from pdt.training.documents import DocumentStream
from pdt.training.engine import Engine
from pdt.training.loop import Trainer
from pdt.training.optimizer import learned_parameters, local
from pdt.training.preflight import check_ranks
from pdt.training.ranks import Ranks
from pdt.training.saved_step import RANDOM
from tests.conftest import ROOT
from tests.journeys.test_training import metrics, numbers
from tests.support.training_samples import corpus

pytestmark = pytest.mark.slow

Records = tuple[RecordShards, PdtConfig]
WHOLE = "[lanes, plan_kv, snc, heads, note_writer]"
QUICK = [
    "training.steps=3",
    f"training.stages=[{{first_step: 0, plan: oracle, trains: {WHOLE}}},"
    " {first_step: 1, plan: learned, trains: [planner]},"
    f" {{first_step: 2, plan: learned, trains: {WHOLE}}}]",
    "training.optimizer.warmup_steps=1",
    "training.optimizer.batch_documents=2",
    "training.optimizer.accumulation=4",
    "training.save_steps=1",
    "training.recompute=true",
]
"""Each rank of two takes two batches of two documents a step; one step a stage."""
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return corpus(tmp_path_factory.mktemp("corpus"), *QUICK, held_out=1, block_tokens=32)


@pytest.fixture(scope="module")
def alone(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    run = tmp_path_factory.mktemp("alone")
    Trainer(random_model(records[1], seed=0), records[0], run).train()
    return run


@pytest.fixture(scope="module")
def pair(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run of two processes."""
    run = tmp_path_factory.mktemp("pair") / "run"
    ended = train_on_two(records, run)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == str(run), "one rank speaks"
    return run


def gradient(parameter: torch.Tensor) -> torch.Tensor:
    assert parameter.grad is not None
    return local(parameter.grad)


def on_two(*arguments: str) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [sys.executable, *launcher, *arguments]


def train_command(records: Records, run: Path, *more: str) -> list[str]:
    tree = records[0].directory.parent / "run.yaml"
    tree.write_text(records[1].model_dump_json(), encoding="utf-8")
    rest = [str(records[0].directory), "--config", str(tree), "--out", str(run), *more]
    return on_two("-m", "pdt", "train", "run", *rest)


def train_on_two(records: Records, run: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = train_command(records, run, *more)
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )


def same(ours: Path, theirs: Path) -> None:
    """The metrics of two runs agree, line by line."""
    for one, two in zip(metrics(ours), metrics(theirs), strict=True):
        assert one["kind"] == two["kind"]
        assert numbers(one) == pytest.approx(numbers(two), rel=1e-4, abs=1e-6)


def only_steps(run: Path, target: Path, last: int) -> Path:
    """A copy of a run as it was after `last` steps, its metrics further than its checkpoint."""
    shutil.copytree(run, target)
    for directory in target.glob("step-*"):
        if int(directory.name.removeprefix("step-")) > last:
            shutil.rmtree(directory)
    return target


@pytest.mark.paper("§6", "Appendix A")
def test_two_ranks_give_the_losses_of_one_process(alone: Path, pair: Path) -> None:
    steps = [line for line in metrics(pair) if line["kind"] == "step"]
    assert [line["documents"] for line in steps] == [8, 16, 24]
    assert all(line["step_documents"] == 8 for line in steps)
    assert [line["kind"] for line in metrics(pair)] == ["step", "evaluation"] * 3
    same(pair, alone)


@pytest.mark.paper("§6")
def test_a_checkpoint_of_two_ranks_is_the_checkpoint_of_one(alone: Path, pair: Path) -> None:
    files = sorted(p.relative_to(alone) for p in alone.glob("step-*/**/*.safetensors"))
    assert len(files) == 3 * 4
    for file in files:
        ours, theirs = load_file(pair / file), load_file(alone / file)
        assert (pair / file).stat().st_size == (alone / file).stat().st_size
        assert ours.keys() == theirs.keys()
        for name in theirs.keys() - {RANDOM}:
            torch.testing.assert_close(ours[name], theirs[name], rtol=1e-3, atol=2e-5)


def test_two_ranks_train_changes_of_low_rank_as_one_process_does(
    records: Records, tmp_path: Path
) -> None:
    """The trunk in shards too: what the changes stand on stays whole on every rank."""
    rank = ["lanes.bank=low_rank", "lanes.rank=3", "training.shard_trunk=true"]
    cheap = records[0], edit_config(records[1], rank, where="test")
    ended = train_on_two(cheap, tmp_path / "pair")
    assert ended.returncode == 0, ended.stderr
    Trainer(random_model(cheap[1], seed=0), cheap[0], tmp_path / "alone").train()
    same(tmp_path / "pair", tmp_path / "alone")


@pytest.mark.paper("§6", "Table 2")
def test_on_two_ranks_what_is_frozen_does_not_move_by_one_bit(pair: Path) -> None:
    def changed(file: str, one: str, two: str) -> set[str]:
        before, after = (load_file(pair / step / "model" / file) for step in (one, two))
        return {name for name, value in before.items() if not torch.equal(value, after[name])}

    assert not changed("lanes.safetensors", "step-000001", "step-000002")
    moved = changed("coordination.safetensors", "step-000001", "step-000002")
    assert moved and all(name.startswith("planner.") for name in moved)
    assert not changed("trunk.safetensors", "step-000001", "step-000003")
    moved = changed("coordination.safetensors", "step-000002", "step-000003")
    assert any(name.endswith("residual_gate") for name in moved)
    assert not any(name.startswith("planner.") for name in moved)


@pytest.mark.paper("§6")
def test_saved_by_two_resumed_by_one(
    records: Records, alone: Path, pair: Path, tmp_path: Path
) -> None:
    run = only_steps(pair, tmp_path / "run", 2)
    Trainer.resume(records[0], run, records[1]).train()
    same(run, alone)


@pytest.mark.paper("§6")
def test_saved_by_one_resumed_by_two_with_the_trunk_in_shards(
    records: Records, alone: Path, tmp_path: Path
) -> None:
    run = only_steps(alone, tmp_path / "run", 2)
    ended = train_on_two(records, run, "--resume", "--set", "training.shard_trunk=true")
    assert ended.returncode == 0, ended.stderr
    same(run, alone)
    trunks = [r / "step-000003/model/trunk.safetensors" for r in (run, alone)]
    assert trunks[0].read_bytes() == trunks[1].read_bytes()


@pytest.mark.paper("§6")
def test_a_rank_that_dies_ends_the_run_and_leaves_no_half_checkpoint(
    records: Records, alone: Path, tmp_path: Path
) -> None:
    run, config = only_steps(alone, tmp_path / "run", 1), tmp_path / "config.json"
    config.write_text(records[1].model_dump_json())
    script = [str(ROOT / "tests/support/dying.py"), str(config), str(records[0].directory)]
    ended = subprocess.run(
        on_two(*script, str(run), "3"), cwd=ROOT, env=ENVIRONMENT, capture_output=True, timeout=600
    )
    assert ended.returncode != 0 and b"SIGKILL" in ended.stderr, ended.stderr.decode()
    assert latest_checkpoint(run) == run / "step-000002"
    Trainer.resume(records[0], run, records[1]).train()
    assert not list(run.glob(".step-*"))
    same(run, alone)


def test_what_one_rank_refuses_all_refuse_and_one_says(tmp_path: Path) -> None:
    """The checks of tests/support/two_ranks.py, which both ranks run."""
    command = on_two(str(ROOT / "tests/support/two_ranks.py"), str(tmp_path))
    ended = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("checked") == 2


@pytest.mark.paper("§6")
def test_ranks_read_disjoint_documents_that_are_those_of_one_process(records: Records) -> None:
    stream = DocumentStream(records[0], batch_documents=1, seed=7)
    whole = stream.batches(3)
    ranks = [stream.batches(4, rank=rank, ranks=2) for rank in (0, 1)]
    assert next(whole)[0] == 3
    for turn in range(8):  # over the borders of epochs of five
        expected = next(whole)
        place, batch = next(ranks[turn % 2])
        assert (place, batch.record_ids) == (expected[0], expected[1].record_ids)


def test_a_step_that_cannot_be_dealt_evenly_is_refused() -> None:
    with pytest.raises(UsageError, match="16 batches cannot be dealt evenly to 3 ranks"):
        check_ranks(load_config("canonical"), 3)
    check_ranks(load_config("canonical"), 8)


@pytest.mark.paper("§6")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_no_document_reached_has_a_gradient_of_zero(records: Records, dtype: str) -> None:
    config = edit_config(records[1], [f"training.dtype={dtype}"], where="test")
    engine = Engine(random_model(config, seed=0), Ranks())
    stage = stages_of(config.training)[0]
    of = stage.plan, stage.losses
    apply_manifest(engine.model, stage)
    batch = next(records[0].batches(1))
    block = replace(  # who writes one block reads no notes
        batch,
        section_tokens_BKT=batch.section_tokens_BKT[:, :, :32],
        dependency_token_BKT=batch.dependency_token_BKT[:, :, :32],
        fact_begin_BKT=batch.fact_begin_BKT[:, :, :32],
        edge_dependency_BJ=batch.edge_dependency_BJ[:, :0],
        edge_token_BJ=batch.edge_token_BJ[:, :0],
        edge_coined_BJ=batch.edge_coined_BJ[:, :0],
        active_node_BKU=batch.active_node_BKU[:, :, :1],
        role_BKUF=batch.role_BKUF[:, :, :1],
    )
    snc = [p for name, p in learned_parameters(engine.model) if ".snc." in name]
    engine.backward(engine.losses(block, *of)[0], last=True)
    assert all(gradient(p).count_nonzero() == 0 for p in snc)
    for first, then in ((block, batch), (batch, block)):
        for parameter in engine.model.parameters():
            parameter.grad = None
        engine.backward(engine.losses(first, *of)[0], last=False)
        engine.backward(engine.losses(then, *of)[0], last=True)
        assert any(gradient(p).count_nonzero() for p in snc)
        assert engine.gradient_norm().isfinite()


@pytest.mark.paper("Appendix A")
def test_bf16_compute_stays_close_to_fp32_and_steps_fp32_masters(
    records: Records, alone: Path, tmp_path: Path
) -> None:
    config = edit_config(records[1], ["training.dtype=bfloat16"], where="test")
    model = random_model(config, seed=0)
    trainer = Trainer(model, records[0], tmp_path)
    trunk = {name: value.clone() for name, value in model.trunk.state_dict().items()}
    dtypes: set[torch.dtype] = set()
    hook = model.trunk.norm.register_forward_hook(lambda m, args, out: dtypes.add(out.dtype))
    trainer.train(until=2)
    hook.remove()
    assert dtypes == {torch.bfloat16}
    assert {p.dtype for _, p in learned_parameters(model)} == {torch.float32}
    assert metrics(tmp_path)[0]["loss"] != metrics(alone)[0]["loss"]
    for ours, theirs in zip(metrics(tmp_path), metrics(alone)[:4], strict=True):
        # What counts codes can differ by a whole note: a near-tie falls the other way.
        for name in {"loss", "token", "plan", "order", "route", "progress"} & theirs.keys():
            assert ours[name] == pytest.approx(theirs[name], rel=0.05), name
    for name, value in model.trunk.state_dict().items():
        assert torch.equal(value, trunk[name])
    # The trunk came from no file: the checkpoint keeps it as it was given, not as it was rounded.
    file = "step-000002/model/trunk.safetensors"
    assert (tmp_path / file).read_bytes() == (alone / file).read_bytes()
    lanes = "step-000002/model/lanes.safetensors"
    assert not torch.equal(
        *(
            torch.cat([v.flatten() for v in load_file(r / lanes).values()])
            for r in (tmp_path, alone)
        )
    )
