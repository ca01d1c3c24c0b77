"""A planner that gives two lanes one plan is seen, whatever its loss."""

import pytest
import torch

from pdt.objective.matching import match_plans, plans_apart

B, K, N, P = 4, 3, 4, 16
VALID = torch.arange(N) < torch.tensor([[2, 3, 4], [4, 4, 4], [3, 2, 3], [4, 2, 2]])[..., None]


@pytest.fixture
def teacher() -> torch.Tensor:
    return torch.randn(B, K, N, P, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def vague(teacher: torch.Tensor) -> torch.Tensor:
    return teacher + torch.randn(B, K, N, P, generator=torch.Generator().manual_seed(1))


def test_the_teachers_plans_in_any_order_are_apart(
    teacher: torch.Tensor, vague: torch.Tensor
) -> None:
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        assert plans_apart(teacher[:, order], teacher, VALID) == 1
        assert plans_apart(vague[:, order], teacher, VALID) == 1


@pytest.mark.paper("§5.1", "Eq. 7")
def test_one_blend_of_two_plans_on_two_lanes_is_not_though_its_loss_is_no_higher(
    teacher: torch.Tensor, vague: torch.Tensor
) -> None:
    blend = teacher[:, :2].mean(1, keepdim=True)
    blended = torch.cat([blend, blend, teacher[:, 2:]], dim=1)
    assert plans_apart(blended, teacher, VALID) == 0
    validity = 9.0 * VALID - 4.5
    losses = [match_plans(nodes, validity, teacher, VALID).loss for nodes in (blended, vague)]
    assert losses[0] <= losses[1]
    blended[0] = teacher[0]
    assert plans_apart(blended, teacher, VALID) == 1 / B


def test_nodes_that_the_teacher_does_not_have_count_for_nothing(teacher: torch.Tensor) -> None:
    lane_1_everywhere = teacher[:, 1:2].expand_as(teacher)
    predicted = torch.where(VALID[..., None], teacher, 100 * lane_1_everywhere)
    assert plans_apart(predicted, teacher, VALID) == 1


def test_a_long_plan_is_not_nearer_for_its_length() -> None:
    """One node that fits well beats four that fit half as well."""
    axis = torch.eye(P)
    teacher = torch.stack([axis[:4], axis[4:8], axis[8:12]])[None]
    valid = torch.arange(N) < torch.tensor([[1, 4, 4]])[..., None]
    first = torch.stack([axis[0] + axis[4], *(axis[5:8] + axis[12:15])])
    predicted = torch.stack([first, axis[4:8], axis[8:12]])[None]
    predicted[0, 0, 0] = 2 * axis[0] + axis[4]
    assert plans_apart(predicted, teacher, valid) == 1
