"""An intervention does what it says and nothing else."""

import pytest
import torch

from pdt.errors import UsageError
from pdt.generation.by_document import ByDocument
from pdt.generation.events import Barrier, PlanReady
from pdt.generation.interventions import (
    INTERVENTION_FORMS,
    MutateCode,
    parse_intervention,
)
from pdt.generation.loop import start
from pdt.model.kernels.round import NativeRound
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.notes.bus import NoteBlock, NotesBus
from tests.support.generations import BLOCK, SAMPLED, SETTINGS, edits, run, some_prompts, tokens_of


@pytest.fixture
def prompt() -> list[int]:
    return some_prompts()[0]


@pytest.mark.paper("§7.1", "Table 3")
def test_a_plan_swap_moves_the_reads_and_leaves_every_weight(
    model: ParallelDecoder, prompt: list[int]
) -> None:
    before = {name: p.clone() for name, p in model.named_parameters()}
    generation = start(model, [prompt], SAMPLED, interventions=edits("swap-plans:0,1"))
    run(generation)
    plans = generation.plans
    assert plans is not None
    given = PlanSet(
        plans.nodes_BKNP[:, [1, 0, 2]], plans.valid_BKN[:, [1, 0, 2]], plans.scores_BK[:, [1, 0, 2]]
    )
    oracle = start(model, [prompt], SAMPLED, plans=given)
    run(oracle)
    for ours, theirs in zip(generation.writers[0], oracle.writers[0], strict=True):
        assert ours.tokens == theirs.tokens
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    plain = tokens_of(model, [prompt], SAMPLED)[0]
    assert [tuple(w.tokens) for w in generation.writers[0]] != plain


@pytest.mark.paper("§7.1")
def test_a_zero_plan_zeroes_content_and_keeps_the_mask(
    model: ParallelDecoder, prompt: list[int]
) -> None:
    generation = start(model, [prompt], SETTINGS, interventions=edits("zero-plan"))
    events, _ = run(generation)
    plain, _ = run(start(model, [prompt], SETTINGS))
    ready, before = events[0], plain[0]
    assert isinstance(ready, PlanReady) and isinstance(before, PlanReady)
    assert ready.valid_nodes == before.valid_nodes
    assert generation.plans is not None and generation.plans_in_force is not None
    assert not generation.plans_in_force.nodes_BKNP.any()
    assert generation.plans.nodes_BKNP.any(), "the planner's own plan is not touched"


@pytest.mark.paper("§7.3")
def test_removing_all_notes_and_closing_the_gate_both_equal_an_empty_bus(
    model: ParallelDecoder, prompt: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tokens_of(model, [prompt], SETTINGS, "remove-notes")
    closed = tokens_of(model, [prompt], SETTINGS, "close-gate")
    plain = tokens_of(model, [prompt])
    monkeypatch.setattr(NotesBus, "window", lambda *_: None)
    empty = tokens_of(model, [prompt])
    assert removed == closed == empty
    assert plain != empty, "the notes do act in this model"


@pytest.mark.paper("§7.3")
def test_closing_the_gate_leaves_every_note_readable_and_adds_nothing(
    model: ParallelDecoder, prompt: list[int]
) -> None:
    closing = start(model, [prompt], SETTINGS, interventions=edits("close-gate"))
    events, _ = run(closing)
    barrier = next(e for e in events if isinstance(e, Barrier))
    assert barrier.may_read == ((True,) * 3,) * 3
    (edit,) = edits("close-gate")
    bus = edit.edit_bus(closing.bus, model.note_writer.vq.decode)
    reads = model.read_notes(bus, len(bus.blocks))
    assert reads is not None
    h_BKTD = torch.randn(1, 3, 2, model.config.trunk.shape.width)
    for layer, memory in zip(model.lane_layers, reads, strict=True):
        assert memory.readable_BKS.all()
        assert not layer.snc(h_BKTD, memory).any()
        assert layer.snc(h_BKTD, memory._replace(gate=1.0)).any()
    written = [tuple(writer.tokens) for writer in closing.writers[0]]
    assert written == tokens_of(model, [prompt], SETTINGS, "remove-notes")[0]


def test_removing_one_producers_notes_leaves_the_other_columns(model: ParallelDecoder) -> None:
    events, _ = run(start(model, some_prompts(), SETTINGS, interventions=edits("remove-notes:1")))
    barrier = next(e for e in events if isinstance(e, Barrier))
    assert barrier.may_read == ((True, False, True),) * 3


def test_blocking_a_reader_blinds_that_lane_alone(
    model: ParallelDecoder, prompt: list[int]
) -> None:
    events, _ = run(start(model, [prompt], SETTINGS, interventions=edits("block-reader:2")))
    barrier = next(e for e in events if isinstance(e, Barrier))
    assert barrier.may_read == ((True,) * 3, (True,) * 3, (False,) * 3)
    blind = tokens_of(model, [prompt], SETTINGS, "block-reader:2")[0]
    quiet = tokens_of(model, [prompt], SETTINGS, "remove-notes")[0]
    assert blind[2] == quiet[2]


@pytest.mark.paper("§7.3")
def test_a_mutated_code_is_another_row_of_the_codebook_at_one_address(
    model: ParallelDecoder,
) -> None:
    vq = model.note_writer.vq
    codes = torch.tensor([[[1, 2], [3, 4], [5, 6]]])
    note = NoteBlock(codes, vq.decode(codes), torch.ones(1, 3, dtype=torch.bool))
    bus = NotesBus(3).commit(0, note).commit(1, note)
    edited = MutateCode(producer=1, block=1, codes_M=(0, 7)).edit_bus(bus, vq.decode)
    assert edited.blocks[0] is bus.blocks[0]
    assert edited.blocks[1].codes_BKM.tolist() == [[[1, 2], [0, 7], [5, 6]]]
    assert torch.equal(edited.blocks[1].vectors_BKE, vq.decode(edited.blocks[1].codes_BKM))
    assert torch.equal(edited.blocks[1].vectors_BKE[:, [0, 2]], note.vectors_BKE[:, [0, 2]])
    half = MutateCode(producer=1, block=1, book_size=8).edit_bus(bus, vq.decode)
    assert half.blocks[1].codes_BKM[0, 1].tolist() == [7, 0]


@pytest.mark.paper("§7.3")
def test_a_mutation_acts_after_its_block_and_not_before(
    model: ParallelDecoder, prompt: list[int]
) -> None:
    plain = start(model, [prompt], SETTINGS)
    run(plain)
    mutated = start(model, [prompt], SETTINGS, interventions=edits("mutate-code:0@1"))
    run(mutated)
    for ours, theirs in zip(mutated.writers[0], plain.writers[0], strict=True):
        assert ours.tokens[: 2 * BLOCK + 1] == theirs.tokens[: 2 * BLOCK + 1]
    # What was really published stays on the true bus.
    assert torch.equal(mutated.bus.blocks[1].codes_BKM, plain.bus.blocks[1].codes_BKM)


@pytest.mark.paper("§7.3")
def test_exchanged_notes_come_from_the_other_document(model: ParallelDecoder) -> None:
    codes = torch.arange(12).view(2, 3, 2) % 8
    vq = model.note_writer.vq
    note = NoteBlock(codes, vq.decode(codes), torch.tensor([[True, True, False], [True] * 3]))
    (edit,) = edits("exchange-notes")
    moved = edit.edit_bus(NotesBus(3).commit(0, note), vq.decode).blocks[0]
    assert torch.equal(moved.codes_BKM[0], codes[1])
    assert torch.equal(moved.vectors_BKE[1], note.vectors_BKE[0])
    assert moved.published_BK.tolist() == [[True] * 3, [True, True, False]]
    with pytest.raises(UsageError, match="at least two documents"):
        tokens_of(model, some_prompts((5,)), SETTINGS, "exchange-notes")


@pytest.mark.paper("§7.3")
def test_exchanged_producers_send_the_same_notes_from_the_wrong_address(
    model: ParallelDecoder,
) -> None:
    codes = torch.arange(12).view(2, 3, 2) % 8
    vq = model.note_writer.vq
    note = NoteBlock(codes, vq.decode(codes), torch.tensor([[True, True, False], [True] * 3]))
    (edit,) = edits("exchange-producers:1,2")
    moved = edit.edit_bus(NotesBus(3).commit(0, note), vq.decode).blocks[0]
    assert torch.equal(moved.codes_BKM, codes[:, [0, 2, 1]])
    assert torch.equal(moved.vectors_BKE, note.vectors_BKE[:, [0, 2, 1]])
    assert moved.published_BK.tolist() == [[True, False, True], [True] * 3]


@pytest.mark.paper("§7.1", "§7.3")
def test_an_edit_by_document_is_each_documents_own_edit(model: ParallelDecoder) -> None:
    prompts = some_prompts((9, 9))
    own = [edits("drop-node:0.1", "swap-plans:0,1"), edits("exchange-producers:0,2", "zero-plan:1")]
    together = start(
        model,
        prompts,
        SETTINGS,
        interventions=[ByDocument(pair) for pair in zip(*own, strict=True)],
    )
    run(together)
    for number, (prompt, alone) in enumerate(zip(prompts, own, strict=True)):
        single = start(model, [prompt], SETTINGS, interventions=alone)
        run(single)
        assert [w.tokens for w in together.writers[number]] == [w.tokens for w in single.writers[0]]
    with pytest.raises(UsageError, match="2 edits are given for 1 documents"):
        run(start(model, prompts[:1], SETTINGS, interventions=together.interventions))


@pytest.mark.paper("§7.3")
def test_scrambled_notes_keep_their_length_and_lose_their_direction(
    model: ParallelDecoder,
) -> None:
    vectors = torch.randn(1, 3, 16)
    note = NoteBlock(torch.zeros(1, 3, 2, dtype=torch.long), vectors, torch.ones(1, 3).bool())
    (edit,) = edits("scramble-notes:5")
    out = edit.edit_bus(NotesBus(3).commit(0, note), model.note_writer.vq.decode).blocks[0]
    torch.testing.assert_close(out.vectors_BKE.norm(dim=-1), vectors.norm(dim=-1))
    cosine = torch.cosine_similarity(out.vectors_BKE, vectors, dim=-1)
    assert (cosine.abs() < 0.9).all()


@pytest.mark.parametrize(
    "text",
    ["close-gate@2", "swap-plans:0,2@2", "zero-plan@2", "scramble-notes@2", "drop-node:1.0@2"],
)
def test_an_intervention_from_a_block_on_changes_nothing_before_it(
    model: ParallelDecoder, prompt: list[int], text: str
) -> None:
    plain = tokens_of(model, [prompt])[0]
    edited = tokens_of(model, [prompt], SETTINGS, text)[0]
    for ours, theirs in zip(edited, plain, strict=True):
        assert ours[: 2 * BLOCK + 1] == theirs[: 2 * BLOCK + 1]


@pytest.mark.parametrize("text", ["swap-plans:0,1@1", "zero-plan:2@1"])
def test_a_plan_edited_midway_reaches_the_compiled_round(
    model: ParallelDecoder, prompt: list[int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tokens_of(model, [prompt], SAMPLED, text)
    assert compiled != tokens_of(model, [prompt], SAMPLED)
    monkeypatch.setattr(NativeRound, "fits", lambda *_: False)
    assert tokens_of(model, [prompt], SAMPLED, text) == compiled


def test_one_node_is_replaced_or_dropped_and_no_other(model: ParallelDecoder) -> None:
    nodes, valid = torch.randn(1, 3, 4, 16), torch.ones(1, 3, 4, dtype=torch.bool)
    plans = PlanSet(nodes, valid, torch.zeros(1, 3))
    (copy,) = edits("replace-node:0.2=1.3")
    replaced = copy.edit_plans(plans).nodes_BKNP
    assert torch.equal(replaced[0, 0, 2], nodes[0, 1, 3])
    changed = (replaced != nodes).any(-1)
    assert changed.nonzero().tolist() == [[0, 0, 2]]
    (drop,) = edits("drop-node:2.1")
    assert (~drop.edit_plans(plans).valid_BKN).nonzero().tolist() == [[0, 2, 1]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("swop-plans:0,1", "no intervention 'swop-plans:0,1'"),
        ("swap-plans:0", "swap-plans:LANE,LANE"),
        ("remove-notes:x", "remove-notes"),
        ("close-gate@-1", "no intervention"),
    ],
)
def test_an_unknown_intervention_is_refused_with_the_known_ones(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_intervention(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("swap-plans:0,3", "Lane 3 does not exist; the model has lanes 0 to 2"),
        ("block-reader:9", "Lane 9"),
        ("mutate-code:0=1,99@0", "2 codes of 0 to 7"),
        ("mutate-code:0=1@0", "2 codes"),
        ("drop-node:0.7", "Plan node 7 does not exist"),
    ],
)
def test_an_index_out_of_range_is_refused(model: ParallelDecoder, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        tokens_of(model, some_prompts(), SETTINGS, text)


def test_every_form_of_the_help_parses() -> None:
    examples = [
        "swap-plans:0,1", "zero-plan", "replace-node:0.1=1.2", "drop-node:0.1", "remove-notes:1",
        "remove-note:1@0", "mutate-code:0@2", "exchange-notes", "exchange-producers:0,1",
        "scramble-notes", "close-gate@3", "block-reader:1",
    ]  # fmt: skip
    assert len(examples) == len(INTERVENTION_FORMS)
    for example, form in zip(examples, INTERVENTION_FORMS, strict=True):
        assert form.startswith(example.split(":")[0].split("@")[0])
        parse_intervention(example)


@pytest.mark.paper("§7.3")
def test_taking_every_note_of_a_lane_away_one_by_one_is_removing_its_notes(
    model: ParallelDecoder,
) -> None:
    (prompt,) = some_prompts()
    each = [f"remove-note:0@{block}" for block in range(4)]
    gone = tokens_of(model, [prompt], SETTINGS, "remove-notes:0")
    assert tokens_of(model, [prompt], SETTINGS, *each) == gone
    first = tokens_of(model, [prompt], SETTINGS, each[0])
    assert first not in (gone, tokens_of(model, [prompt], SETTINGS))
