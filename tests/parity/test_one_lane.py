"""Lanes one after another are the packed frontier."""

import pytest
import torch

from pdt.model.one_lane import one_lane
from pdt.model.pdt import ParallelDecoder
from pdt.notes.bus import NoteBlock
from pdt.notes.visibility import visibility_table
from pdt.terms import NotesCondition
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll


@pytest.mark.paper("§3.6", "Table 3")
def test_the_packed_frontier_equals_its_lanes_run_one_after_another(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=3)
    packed, packed_bus = roll(model, open_frontier(model, tokens, lengths, plans), lanes)
    views = [one_lane(model, lane) for lane in range(3)]
    frontiers = [
        open_frontier(view, tokens, lengths, plans.select([lane]))
        for lane, view in enumerate(views)
    ]
    may_read = visibility_table(NotesCondition.BUS, 3)
    bus, states = model.empty_bus(), []
    for block, part in enumerate(lanes.split(model.config.lanes.block_tokens, dim=2)):
        h, notes = [], []
        for lane, view in enumerate(views):
            read = view.read_notes(bus, block, may_read[lane : lane + 1])
            h.append(view.advance(frontiers[lane], part[:, lane : lane + 1], read))
            notes.append(view.write_notes(h[-1][:, :, -1], torch.ones(2, 1, dtype=torch.bool)))
        columns = zip(*((n.codes_BKM, n.vectors_BKE, n.published_BK) for n in notes), strict=True)
        bus = bus.commit(block, NoteBlock(*(torch.cat(column, dim=1) for column in columns)))
        states.append(torch.cat(h, dim=1))
    torch.testing.assert_close(torch.cat(states, dim=2), packed, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(bus.blocks, packed_bus.blocks, strict=True):
        assert torch.equal(ours.codes_BKM, theirs.codes_BKM)


def test_a_lane_view_copies_no_weight(model: ParallelDecoder) -> None:
    view = one_lane(model, 1)
    whole = dict(model.named_parameters())
    for name, parameter in view.named_parameters():
        if name.startswith("lanes.") and ".decoder." in name:
            assert parameter.data_ptr() == whole[name][1].data_ptr(), name
            assert parameter.shape[0] == 1
    assert model.config.lanes.count == 3
