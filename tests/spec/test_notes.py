"""The notes bus as a value, its window and its conditions."""

import pytest
import torch

from pdt.errors import BusError
from pdt.generation.interventions import ExchangeProducers
from pdt.model.pdt import ParallelDecoder
from pdt.notes.bus import NoteBlock, NotesBus
from pdt.notes.product_vq import ProductVQ
from pdt.notes.visibility import visibility_table
from pdt.terms import NotesCondition
from tests.support.rollouts import lane_tokens, open_frontier, plan_of, prompts, roll

BUS = visibility_table(NotesCondition.BUS, 3)


def note(fill: float = 0.0, lanes: int = 3, published: bool = True) -> NoteBlock:
    return NoteBlock(
        torch.zeros(1, lanes, 2, dtype=torch.long),
        torch.full((1, lanes, 16), fill),
        torch.full((1, lanes), published),
    )


@pytest.mark.paper("§3.5")
def test_the_three_conditions_are_one_table() -> None:
    table = {c: visibility_table(c, 3) for c in NotesCondition}
    assert table[NotesCondition.BUS].all()
    assert torch.equal(table[NotesCondition.SELF_ONLY], torch.eye(3, dtype=torch.bool))
    assert not table[NotesCondition.NO_DYNAMIC].any()


@pytest.mark.paper("§3.5", "Fig. 3")
def test_a_note_of_block_b_is_first_readable_in_block_b_plus_one() -> None:
    bus = NotesBus(3).commit(0, note(1.0))
    assert bus.window(0, BUS, 16) is None
    window = bus.window(1, BUS, 16)
    assert window is not None
    assert window.lag_Q.tolist() == [1, 1, 1]
    assert window.producer_Q.tolist() == [0, 1, 2]


@pytest.mark.paper("§2.2", "§3.5")
def test_a_longer_delay_hands_each_note_on_later_and_keeps_the_window() -> None:
    bus = NotesBus(3)
    for block in range(6):
        bus = bus.commit(block, note(float(block)))
    assert bus.window(1, BUS, 16, delay_blocks=2) is None
    window = bus.window(6, BUS, 3, delay_blocks=2)
    assert window is not None
    assert window.lag_Q.tolist() == [4, 4, 4, 3, 3, 3, 2, 2, 2]
    assert window.vectors_BQE[0, :, 0].tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4]


@pytest.mark.mechanism
@pytest.mark.paper("§2.2", "§3.5")
def test_the_configured_delay_is_the_block_in_which_a_sibling_is_first_heard(
    model: ParallelDecoder,
) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes, size = lane_tokens(model, 2, blocks=3), model.config.lanes.block_tokens
    changed = lanes.clone()
    changed[:, 0] = (changed[:, 0] + 7) % 96
    for delay in (1, 2):
        records = model.config.records.model_copy(update={"note_delay_blocks": delay})
        model.config = model.config.model_copy(update={"records": records})
        before, after = (
            roll(model, open_frontier(model, tokens, lengths, plans), each)[0][:, 1:]
            for each in (lanes, changed)
        )
        moved = [
            not torch.equal(b, a)
            for b, a in zip(before.split(size, 2), after.split(size, 2), strict=True)
        ]
        assert moved == [block >= delay for block in range(3)]


@pytest.mark.paper("§3.5", "Fig. 3")
def test_no_lane_reads_for_a_block_whose_barrier_is_open() -> None:
    with pytest.raises(BusError, match="has not been committed"):
        NotesBus(3).commit(0, note()).window(2, BUS, 16)


@pytest.mark.paper("§3.5", "Fig. 3")
@pytest.mark.parametrize(
    ("block", "notes", "message"),
    [
        (0, note(), "already committed"),
        (2, note(), "before block 1"),
        (1, note(lanes=1), "All lanes commit together"),
    ],
)
def test_a_commit_twice_out_of_order_or_for_one_lane_alone_is_an_error(
    block: int, notes: NoteBlock, message: str
) -> None:
    bus = NotesBus(3).commit(0, note())
    with pytest.raises(BusError, match=message):
        bus.commit(block, notes)
    assert len(bus.blocks) == 1


@pytest.mark.paper("§3.5")
def test_a_bus_is_a_value() -> None:
    empty = NotesBus(3)
    assert empty.commit(0, note()) is not empty
    assert empty.blocks == ()


@pytest.mark.paper("§3.5", "Table 4")
def test_the_window_retains_at_most_its_blocks() -> None:
    bus = NotesBus(3)
    for block in range(20):
        bus = bus.commit(block, note(float(block)))
    window = bus.window(20, BUS, 16)
    assert window is not None
    assert window.vectors_BQE.shape == (1, 48, 16)
    assert window.lag_Q.max() == 16
    assert window.vectors_BQE[0, 0, 0] == 4.0


@pytest.mark.paper("§3.5")
def test_an_ended_lane_publishes_nothing_and_its_earlier_notes_stay() -> None:
    last = NoteBlock(
        torch.zeros(1, 3, 2, dtype=torch.long),
        torch.zeros(1, 3, 16),
        torch.tensor([[True, False, True]]),
    )
    window = NotesBus(3).commit(0, note()).commit(1, last).window(2, BUS, 16)
    assert window is not None
    assert window.readable_BKQ[0, 0].tolist() == [True, True, True, True, False, True]


@pytest.mark.mechanism
@pytest.mark.paper("§7.1", "Table 3")
def test_self_only_closes_every_sibling_path_and_keeps_its_own(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    own = visibility_table(NotesCondition.SELF_ONLY, 3)
    lanes = lane_tokens(model, 2, blocks=3)
    changed = lanes.clone()
    changed[:, 0] = (changed[:, 0] + 7) % 96
    before, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes, may_read_KK=own)
    after, _ = roll(model, open_frontier(model, tokens, lengths, plans), changed, may_read_KK=own)
    assert torch.equal(before[:, 1:], after[:, 1:])
    none = visibility_table(NotesCondition.NO_DYNAMIC, 3)
    without, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes, may_read_KK=none)
    assert not torch.allclose(before, without), "a lane does read its own notes"


@pytest.mark.mechanism
@pytest.mark.paper("§3.5", "§7.3")
def test_a_note_from_another_sender_is_another_note(model: ParallelDecoder) -> None:
    """Both senders are siblings of lane 0 and have one lag: only the producer header differs."""
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    written = model.write_notes(torch.randn(2, 3, 32), torch.ones(2, 3, dtype=torch.bool))
    bus = model.empty_bus().commit(0, written)
    moved = ExchangeProducers(1, 2).edit_bus(bus, model.note_writer.vq.decode)
    lanes = lane_tokens(model, 2, blocks=1)
    plain, exchanged = (
        model.advance(
            open_frontier(model, tokens, lengths, plans), lanes, model.read_notes(b, 1, BUS)
        )
        for b in (bus, moved)
    )
    assert (plain - exchanged)[:, 0].abs().max() > 1e-4


@pytest.mark.mechanism
@pytest.mark.paper("§7.3")
def test_removing_all_notes_equals_an_empty_bus(model: ParallelDecoder) -> None:
    tokens, lengths = prompts(model)
    plans = plan_of(model, tokens, lengths)
    lanes = lane_tokens(model, 2, blocks=2)
    none = visibility_table(NotesCondition.NO_DYNAMIC, 3)
    without, _ = roll(model, open_frontier(model, tokens, lengths, plans), lanes, may_read_KK=none)
    plain = model.advance(open_frontier(model, tokens, lengths, plans), lanes, None)
    torch.testing.assert_close(without, plain, atol=1e-5, rtol=1e-5)  # blocks against one call


@pytest.mark.mechanism
@pytest.mark.paper("§3.5", "Eq. 5")
def test_the_payload_is_the_codes_and_nothing_else(model: ParallelDecoder) -> None:
    """Whatever a lane's state was, equal codes are an equal message, bit for bit."""
    h = torch.randn(2, 3, 32)
    everyone = torch.ones(2, 3, dtype=torch.bool)
    wrote = model.write_notes(h, everyone)
    nudged = model.write_notes(h + 1e-6, everyone)
    assert torch.equal(wrote.codes_BKM, nudged.codes_BKM)
    assert torch.equal(wrote.vectors_BKE, nudged.vectors_BKE)
    assert torch.equal(wrote.vectors_BKE, model.note_writer.vq.decode(wrote.codes_BKM))


@pytest.mark.paper("§3.5", "Eq. 5", "Table 4")
def test_a_canonical_note_is_four_bytes() -> None:
    vq = ProductVQ(256, 4, 256)
    codes = vq.nearest(torch.randn(5, 3, 256))
    assert codes.shape == (5, 3, 4)
    assert 0 <= int(codes.min()) <= int(codes.max()) < 256
    assert codes.to(torch.uint8).numpy().nbytes == 5 * 3 * 4


@pytest.mark.paper("Eq. 5")
def test_each_code_is_the_nearest_by_a_naive_search() -> None:
    vq = ProductVQ(12, 3, 7)
    written = torch.randn(2, 3, 12)
    codes = vq.nearest(written)
    for b in range(2):
        for k in range(3):
            for m in range(3):
                part = written[b, k, 4 * m : 4 * m + 4]
                distances = [float((part - e).square().sum()) for e in vq.codebooks.detach()[m]]
                assert codes[b, k, m] == distances.index(min(distances))


@pytest.mark.paper("Eq. 5", "§5.2")
def test_gradients_pass_straight_through_to_the_writer() -> None:
    vq = ProductVQ(12, 3, 7)
    written = torch.randn(1, 2, 12, requires_grad=True)
    weight = torch.randn(1, 2, 12)
    (vq(written).vectors_BKE * weight).sum().backward()
    assert written.grad is not None and torch.equal(written.grad, weight)
    assert vq.codebooks.grad is None
