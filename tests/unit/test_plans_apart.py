"""A planner that gives two lanes one plan is seen, whatever its loss."""

import pytest
import torch

from pdt.objective.matching import match_plans, plans_apart

B, K, N, P = 4, 3, 4, 16
VALID = torch.arange(N) < torch.tensor([[2, 3, 4], [4, 4, 4], [3, 2, 3], [4, 2, 2]])[..., None]


@pytest.fixture
def teacher() -> torch.Tensor:
    return torch.randn(B, K, N, P, generator=torch.Generator().manual_seed(0))


@pytest.mark.paper("§5.1", "Eq. 7")
def test_the_teachers_plans_in_any_order_are_apart(teacher: torch.Tensor) -> None:
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        assert plans_apart(teacher[:, order], teacher, VALID) == 1
    vague = teacher + 0.8 * torch.randn(B, K, N, P, generator=torch.Generator().manual_seed(1))
    assert plans_apart(vague, teacher, VALID) == 1


def test_one_blend_of_two_plans_on_two_lanes_is_not(teacher: torch.Tensor) -> None:
    blend = teacher[:, :2].mean(1, keepdim=True)
    predicted = torch.cat([blend, blend, teacher[:, 2:]], dim=1)
    assert plans_apart(predicted, teacher, VALID) == 0
    predicted[0] = teacher[0]
    assert plans_apart(predicted, teacher, VALID) == 1 / B
    # Eq. 7 matches them all the same, and its loss is that of plans that are all a little off.
    loss = match_plans(predicted[1:], 9 * VALID[1:] - 4.5, teacher[1:], VALID[1:]).loss
    assert 0 < loss < 0.3


def test_nodes_that_the_teacher_does_not_have_count_for_nothing(teacher: torch.Tensor) -> None:
    lane_1_everywhere = teacher[:, 1:2].expand_as(teacher)
    predicted = torch.where(VALID[..., None], teacher, 100 * lane_1_everywhere)
    assert plans_apart(predicted, teacher, VALID) == 1
