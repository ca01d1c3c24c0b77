"""Table 2: what a stage trains moves, what it freezes does not, and no lane has a fixed job."""

import itertools

import pytest
import torch

from pdt.config import PdtConfig, load_config
from pdt.errors import ConfigError, UsageError
from pdt.model.build import random_model
from pdt.objective.total import total_loss
from pdt.records.batch import RecordBatch, RecordShards, collate
from pdt.terms import Component, Loss, PlanCondition
from pdt.training.assignment import assign_lanes, draw_assignment
from pdt.training.curriculum import apply_manifest, component_of, stage_at, stages_of
from pdt.training.losses import compute_losses
from pdt.training.optimizer import build_optimizer, learning_rate_at, take_step
from tests.conftest import open_model
from tests.support.training_samples import corpus

EXECUTOR = set(Component) - {Component.PLANNER}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordShards, PdtConfig]:
    return corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def batch(records: tuple[RecordShards, PdtConfig]) -> RecordBatch:
    return next(iter(records[0].batches(2)))


@pytest.mark.paper("§6", "Table 2")
def test_the_canonical_curriculum_is_table_two() -> None:
    stages = stages_of(load_config("canonical").training)
    spans = [(stage.first_step, stage.stop_step) for stage in stages]
    assert spans == [(0, 3750), (3750, 10000), (10000, 25000), (25000, 50000)]
    assert [stage.plan for stage in stages] == [PlanCondition.ORACLE] + [PlanCondition.LEARNED] * 3
    assert [set(stage.trains) for stage in stages] == [
        EXECUTOR,
        {Component.PLANNER},
        set(Component),
        set(Component),
    ]


@pytest.mark.paper("Table 2")
def test_a_loss_whose_module_is_frozen_is_off() -> None:
    first, second, third, _ = stages_of(load_config("canonical").training)
    assert set(second.losses) == {Loss.PLAN, Loss.ORDER, Loss.POINT}
    assert set(first.losses) == set(Loss) - set(second.losses)
    assert set(third.losses) == set(Loss)


@pytest.mark.paper("Table 2")
def test_one_number_scales_the_curriculum() -> None:
    training = load_config("canonical", overrides=["training.scale=0.01"]).training
    assert [stage.stop_step for stage in stages_of(training)] == [38, 100, 250, 500]
    assert stage_at(training, 99).number == 1 and stage_at(training, 100).number == 2
    with pytest.raises(UsageError, match="past the curriculum"):
        stage_at(training, 500)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("training.scale=0.00001", "stage borders"),
        ("training.stages=[{first_step: 0, plan: oracle, trains: []}]", "trains nothing"),
        ("training.stages=[{first_step: 0, plan: zero, trains: [lanes]}]", "'oracle' or 'learned'"),
        ("training.stages=[{first_step: 5, plan: oracle, trains: [lanes]}]", "first_step is 0"),
    ],
)
def test_a_curriculum_that_cannot_run_is_refused(override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_config("canonical", overrides=[override])


def test_every_parameter_belongs_to_one_component_or_to_the_trunk() -> None:
    model = open_model()
    found = {component_of(name) for name, _ in model.named_parameters()}
    assert found == {None, *Component}


@pytest.mark.paper("§6", "Table 2")
@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_frozen_does_not_move_by_one_bit_and_what_trains_moves(
    records: tuple[RecordShards, PdtConfig], batch: RecordBatch, number: int
) -> None:
    config = records[1]
    model = open_model(config)
    optimizer = build_optimizer(model, config.training)
    stages = stages_of(config.training)
    # Everything has moments from a joint step before, so that only the manifest can hold it still.
    for stage, steps in ((stages[2], 1), (stages[number], 2)):
        apply_manifest(model, stage)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        for _ in range(steps):
            parts = compute_losses(model, batch, stage.plan, stage.losses).parts
            assert set(parts) == set(stage.losses)
            total_loss(parts, config.objective).backward()
            take_step(model, optimizer, config.training, 2, norm=1.0)
    moved = set()
    for name, value in model.state_dict().items():
        if not torch.equal(value, before[name]):
            moved.add(component_of(name))
    assert moved == set(stages[number].trains)


@pytest.mark.paper("Table 2")
def test_the_planner_loss_falls_in_stage_one(
    records: tuple[RecordShards, PdtConfig], batch: RecordBatch
) -> None:
    config = records[1]
    model = random_model(config, seed=0)
    stage = stages_of(config.training)[1]
    apply_manifest(model, stage)
    optimizer = torch.optim.AdamW(model.planner.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        parts = compute_losses(model, batch, stage.plan, stage.losses).parts
        losses.append(parts[Loss.PLAN].item())
        total_loss(parts, config.objective).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0] / 2


@pytest.mark.paper("§6")
def test_all_permutations_are_eligible_and_the_seed_gives_them_again() -> None:
    draws = draw_assignment(7, range(600), 3)
    counts = {
        order: int((draws == torch.tensor(order)).all(1).sum())
        for order in itertools.permutations(range(3))
    }
    assert min(counts.values()) > 60 and sum(counts.values()) == 600
    assert torch.equal(draw_assignment(7, range(590, 600), 3), draws[590:])
    assert not torch.equal(draw_assignment(8, range(600), 3), draws)


@pytest.mark.paper("§6")
def test_assignment_moves_a_lane_with_all_its_labels(batch: RecordBatch) -> None:
    physical_of_semantic = torch.tensor([[2, 0, 1], [1, 0, 2]])
    moved = assign_lanes(batch, physical_of_semantic)
    for b, semantic in itertools.product(range(2), range(3)):
        lane = physical_of_semantic[b, semantic]
        for name in ("section_tokens_BKT", "plan_targets_BKNP", "role_BKUF", "active_node_BKU"):
            assert torch.equal(getattr(moved, name)[b, lane], getattr(batch, name)[b, semantic])
    for b, f in itertools.product(range(2), range(moved.owner_lane_BF.shape[1])):
        if moved.owner_lane_BF[b, f] >= 0:
            assert moved.lane_role_BKF[b, moved.owner_lane_BF[b, f], f] == 0
    receivers, owners = moved.dependency_receiver_BR, batch.dependency_receiver_BR
    assert torch.equal(receivers < 0, owners < 0)
    back = assign_lanes(moved, physical_of_semantic.argsort(1))
    assert torch.equal(back.section_tokens_BKT, batch.section_tokens_BKT)
    assert torch.equal(back.owner_lane_BF, batch.owner_lane_BF)


@pytest.mark.paper("§6")
def test_equal_stacks_do_not_care_which_of_them_writes_a_section(
    records: tuple[RecordShards, PdtConfig], batch: RecordBatch
) -> None:
    model = random_model(records[1], seed=0)
    stage = stages_of(records[1].training)[0]
    with torch.no_grad():
        plain = compute_losses(model, batch, stage.plan, stage.losses).parts
        moved = assign_lanes(batch, torch.tensor([[2, 0, 1], [1, 0, 2]]))
        again = compute_losses(model, moved, stage.plan, stage.losses).parts
    for loss in stage.losses:
        torch.testing.assert_close(again[loss], plain[loss], atol=1e-5, rtol=1e-5)


@pytest.mark.paper("§6", "Appendix A")
def test_a_batch_is_the_mean_of_its_documents(records: tuple[RecordShards, PdtConfig]) -> None:
    model = open_model(records[1])
    rows = list(records[0].rows())[:2]
    with torch.no_grad():
        for plan in (PlanCondition.ORACLE, PlanCondition.LEARNED):
            whole = compute_losses(model, collate(rows), plan, list(Loss)).parts
            single = [compute_losses(model, collate([r]), plan, list(Loss)).parts for r in rows]
            assert list(whole) and set(whole) == set(Loss)
            for loss in Loss:
                mean = (single[0][loss] + single[1][loss]) / 2
                torch.testing.assert_close(whole[loss], mean, atol=1e-4, rtol=1e-4)


@pytest.mark.paper("Appendix A")
def test_the_registered_optimizer_is_the_papers() -> None:
    training = load_config("canonical").training
    optimizer = training.optimizer
    assert (optimizer.learning_rate, optimizer.weight_decay) == (2e-4, 0.01)
    assert (optimizer.warmup_steps, optimizer.clip_norm) == (1250, 1.0)
    assert (optimizer.batch_documents, optimizer.accumulation) == (1, 16)
    rates = [learning_rate_at(training, step) for step in (0, 624, 1249, 1250, 25625, 49999)]
    assert rates[:3] == pytest.approx([2e-4 / 1250, 1e-4, 2e-4])
    assert rates[3:] == pytest.approx([2e-4, 1e-4, 0.0], abs=1e-9)


def test_a_stage_may_have_a_cosine_of_its_own() -> None:
    stages = "training.stages=[{first_step: 0, plan: oracle, trains: [lanes]}, "
    stages += "{first_step: 100, plan: learned, trains: [planner], learning_rate: 1.0e-3}]"
    settings = [stages, "training.steps=300", "training.optimizer.warmup_steps=10"]
    training = load_config("tiny", overrides=settings).training
    whole = training.optimizer.learning_rate
    rates = [learning_rate_at(training, step) for step in (0, 9, 99, 100, 109, 110, 205, 299)]
    assert rates[:3] == pytest.approx([whole / 10, whole, whole * 0.785], rel=1e-3)
    assert rates[3:] == pytest.approx([1e-4, 1e-3, 1e-3, 5e-4, 0.0], abs=1e-7)


def test_what_starts_from_nothing_learns_at_its_own_rate() -> None:
    """One step of a constant gradient: AdamW moves a weight by its rate, whatever the gradient."""
    config = load_config(
        "tiny",
        overrides=[
            "training.optimizer.coordination_rate=3",
            "training.optimizer.weight_decay=0",
            "training.optimizer.warmup_steps=0",
        ],
    )
    model = random_model(config)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    optimizer = build_optimizer(model, config.training)
    for name, parameter in model.named_parameters():
        if not name.startswith("trunk."):
            parameter.grad = torch.ones_like(parameter)
    take_step(model, optimizer, config.training, 0, norm=0.5)
    rate = learning_rate_at(config.training, 0)
    for name, parameter in model.named_parameters():
        moved = (before[name] - parameter).abs().max().item()
        times = {None: 0, Component.LANES: 1}.get(component_of(name), 3)
        assert moved == pytest.approx(times * rate, rel=1e-2), name
