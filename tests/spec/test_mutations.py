"""Each mechanism, broken on purpose, makes its test fail: no test here passes by itself."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pdt.model import attention, gated_read, kernels, layer, pdt, plan_kv, trunk
from pdt.model.attention import Segment
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.notes import address, bus, product_vq
from tests.conftest import open_model
from tests.parity import test_execution as execution
from tests.spec import test_lanes as lanes
from tests.spec import test_notes as notes
from tests.support.mechanisms import mechanisms_of
from tests.support.rollouts import plan_of

Patch = pytest.MonkeyPatch


def lanes_read_each_others_keys(patch: Patch) -> None:
    plain = attention.attend

    def leak(q: Any, segments: Any, tile: int = 512) -> Any:
        *past, own = segments
        mixed = Segment(own.k.roll(1, dims=1), own.v.roll(1, dims=1))
        return plain(q, [*past, mixed], tile)

    patch.setattr(layer, "attend", leak)


def a_note_is_delivered_one_block_too_late(patch: Patch) -> None:
    plain = bus.NotesBus.window
    patch.setattr(
        bus.NotesBus, "window", lambda self, block, *rest: plain(self, max(0, block - 1), *rest)
    )


def every_note_waits_one_block_whatever_is_configured(patch: Patch) -> None:
    plain = bus.NotesBus.window
    patch.setattr(bus.NotesBus, "window", lambda self, *rest: plain(self, *rest[:3]))


def plans_are_routed_to_the_neighbour(patch: Patch) -> None:
    plain = plan_kv.PlanKV.read_plan
    patch.setattr(
        plan_kv.PlanKV,
        "read_plan",
        lambda self, memory, valid: plain(self, memory.roll(1, dims=1), valid),
    )


def masks_are_ignored(patch: Patch) -> None:
    plain = gated_read.GatedRead.project
    patch.setattr(
        gated_read.GatedRead,
        "project",
        lambda self, memory, readable: plain(self, memory, torch.ones_like(readable)),
    )


def all_lanes_use_the_first_slice(patch: Patch) -> None:
    plain = kernels.grouped_linear
    patch.setattr(
        kernels,
        "grouped_linear",
        lambda x, weight, bias=None: plain(x, weight[:1].expand_as(weight), bias),
    )


def every_table_is_the_full_bus(patch: Patch) -> None:
    everyone = torch.ones(3, 3, dtype=torch.bool)
    patch.setattr(notes, "visibility_table", lambda condition, lanes: everyone)


def notes_do_not_say_who_sent_them(patch: Patch) -> None:
    plain = address.NoteAddress.header
    patch.setattr(
        address.NoteAddress,
        "header",
        lambda self, producer, kind, lag: plain(self, torch.zeros_like(producer), kind, lag),
    )


def the_payload_is_the_written_vector(patch: Patch) -> None:
    patch.setattr(
        product_vq.ProductVQ,
        "forward",
        lambda self, written: product_vq.Quantized(self.nearest(written), written),
    )


def the_trunk_runs_inside_autograd(patch: Patch) -> None:
    patch.setattr(trunk.Trunk, "forward", inspect.unwrap(trunk.Trunk.forward))
    plain = ParallelDecoder.read_prompt

    def thawed(self: Any, *rest: Any) -> Any:
        self.trunk.requires_grad_(True)
        return plain(self, *rest)

    patch.setattr(ParallelDecoder, "read_prompt", thawed)


def lane_positions_restart_at_zero(patch: Patch) -> None:
    plain = pdt.ParallelDecoder.open_lanes

    def restarted(self: Any, *rest: Any, **named: Any) -> Any:
        frontier = plain(self, *rest, **named)
        frontier.lengths_B = torch.zeros_like(frontier.lengths_B)
        return frontier

    patch.setattr(pdt.ParallelDecoder, "open_lanes", restarted)


MUTATIONS: list[tuple[Callable[[Patch], None], Callable[[ParallelDecoder], None]]] = [
    (lanes_read_each_others_keys, lanes.test_same_round_tokens_never_observe_one_another),
    (
        a_note_is_delivered_one_block_too_late,
        lanes.test_a_sibling_token_changes_nothing_before_the_next_block_and_something_after,
    ),
    (
        every_note_waits_one_block_whatever_is_configured,
        notes.test_the_configured_delay_is_the_block_in_which_a_sibling_is_first_heard,
    ),
    (plans_are_routed_to_the_neighbour, lanes.test_a_lane_reads_only_its_own_plan),
    (masks_are_ignored, lanes.test_an_invalid_plan_node_is_never_read),
    (masks_are_ignored, notes.test_self_only_closes_every_sibling_path_and_keeps_its_own),
    (all_lanes_use_the_first_slice, lanes.test_a_lanes_gradient_touches_only_its_own_slice),
    (
        all_lanes_use_the_first_slice,
        lanes.test_permuting_lanes_with_their_plans_and_tokens_permutes_the_output,
    ),
    (every_table_is_the_full_bus, notes.test_self_only_closes_every_sibling_path_and_keeps_its_own),
    (every_table_is_the_full_bus, notes.test_removing_all_notes_equals_an_empty_bus),
    (notes_do_not_say_who_sent_them, notes.test_a_note_from_another_sender_is_another_note),
    (the_payload_is_the_written_vector, notes.test_the_payload_is_the_codes_and_nothing_else),
    (the_trunk_runs_inside_autograd, lanes.test_no_gradient_reaches_the_trunk),
    (lane_positions_restart_at_zero, execution.test_cached_equals_uncached),
]


@pytest.mark.parametrize(
    ("mutate", "claim"), MUTATIONS, ids=lambda function: function.__name__.removeprefix("test_")
)
def test_a_broken_mechanism_is_caught(
    mutate: Callable[[Patch], None], claim: Callable[[ParallelDecoder], None]
) -> None:
    claim(open_model())
    torch.manual_seed(1729)
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError):
            claim(open_model())


def test_every_mechanism_has_a_mutation() -> None:
    marked = {claim for module in (lanes, notes, execution) for claim in mechanisms_of(module)}
    assert marked == {claim for _, claim in MUTATIONS}


def test_an_output_map_that_does_not_start_at_zero_breaks_the_untrained_equality() -> None:
    model = random_model(open_model().config)
    tokens = torch.randint(96, (1, 12))
    with torch.no_grad():
        prompt = model.read_prompt(tokens)
        plans = plan_of(model, tokens, torch.tensor([12]))
        before = model.open_lanes(prompt, plans).h_BKD
        assert torch.equal(before[:, 0], before[:, 1]), "untrained lanes are equal"
        model.lane_layers[0].plan_kv.o_proj.weight.fill_(0.1)
        after = model.open_lanes(prompt, plans).h_BKD
    assert not torch.allclose(before, after)
