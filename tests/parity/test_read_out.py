"""The read-out takes the owner's note of every coined edge, as SNC would read it alone."""

from dataclasses import replace
from pathlib import Path

import torch

from pdt.model.build import random_model
from pdt.model.oracle import oracle_plans
from pdt.model.pdt import ParallelDecoder
from pdt.notes.bus import NoteWindow
from pdt.terms import Loss, PlanCondition
from pdt.training.losses import compute_losses
from pdt.training.rollout import roll_out
from tests.support.training_samples import corpus


def opened(model: ParallelDecoder) -> ParallelDecoder:
    """With output maps that are not zero, so that there is something to read."""
    for layer in model.lane_layers:
        torch.nn.init.normal_(layer.snc.o_proj.weight, std=0.1)
        torch.nn.init.normal_(layer.snc.o_proj.bias, std=0.1)
    return model


def test_a_note_read_out_is_what_snc_reads_when_there_is_no_other(model: ParallelDecoder) -> None:
    opened(model)
    snc, E = model.lane_layers[0].snc, model.config.reads.memory_width
    note, h = torch.randn(1, 1, E), torch.randn(1, 3, 2, model.config.trunk.shape.width)
    window = NoteWindow(
        note, torch.tensor([1]), torch.tensor([2]), torch.ones(1, 3, 1, dtype=torch.bool)
    )
    read = snc(h, snc.read_notes(window))
    alone = snc.read_out(note, torch.tensor([[1]]), torch.tensor([[2]]))
    for lane in (0, 2):  # lane 1 wrote the note: to itself it is no sibling's
        torch.testing.assert_close(read[0, lane, 1], alone[0, 0])


def test_every_coined_edge_is_read_out_from_its_owners_block(tmp_path: Path) -> None:
    shards, config = corpus(tmp_path)
    model = opened(random_model(config, seed=0))
    batch = next(shards.batches(4))
    batch = replace(batch, edge_coined_BJ=batch.edge_valid_BJ)
    assert batch.edge_valid_BJ.any() and not batch.edge_valid_BJ.all()
    ours = compute_losses(model, batch, PlanCondition.ORACLE, [Loss.READ_OUT]).parts[Loss.READ_OUT]
    lengths = batch.prompt_valid_BS.sum(1)
    prompt = model.read_prompt(batch.prompt_tokens_BS.clamp(min=0), lengths)
    frontier = model.open_lanes(prompt, oracle_plans(model, prompt, batch))
    bus = roll_out(model, frontier, batch.section_tokens_BKT).bus
    documents = []
    for b in range(len(batch.record_ids)):
        nll = []
        for j in range(batch.edge_valid_BJ.shape[1]):
            if not batch.edge_valid_BJ[b, j]:
                continue
            r, token = int(batch.edge_dependency_BJ[b, j]), int(batch.edge_token_BJ[b, j])
            owner = int(batch.dependency_owner_BR[b, r])
            block = int(batch.dependency_owner_block_BR[b, r])
            note = bus.blocks[block].vectors_BKE[b, owner]
            lag = token // config.lanes.block_tokens - block
            h = torch.zeros(config.trunk.shape.width)
            for layer in model.lane_layers:
                where = torch.tensor([[owner]]), torch.tensor([[lag]])
                h = h + layer.snc.read_out(note[None, None], *where)[0, 0]
            logits = model.logits(h[None, None, None])[0, 0, 0]
            receiver = int(batch.dependency_receiver_BR[b, r])
            word = int(batch.section_tokens_BKT[b, receiver, token])
            nll.append(-torch.log_softmax(logits, 0)[word])
        documents.append(torch.stack(nll).mean() if nll else torch.zeros(()))
    torch.testing.assert_close(ours, torch.stack(documents).mean(), atol=1e-5, rtol=1e-4)
    ours.backward()
    assert model.note_writer.proj.weight.grad is not None
    assert model.lane_layers[0].snc.v_proj.weight.grad is not None
