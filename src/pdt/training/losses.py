"""From a batch of documents on their lanes to the losses that count in a stage.

Paper: §5, §6.
"""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.model.oracle import oracle_plans, plan_targets
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import PlanSet
from pdt.model.prompt import Prompt
from pdt.notes.bus import NotesBus
from pdt.objective.channel import code_counts, codebook_loss, commitment_loss, usage_deficit
from pdt.objective.fact_write import fact_write_loss
from pdt.objective.matching import match_plans, plans_apart
from pdt.objective.note import note_loss
from pdt.objective.order import order_loss
from pdt.objective.point import place_loss, point_loss
from pdt.objective.progress import progress_loss
from pdt.objective.read_out import read_out_loss
from pdt.objective.route import route_loss
from pdt.objective.token import token_loss
from pdt.records.batch import RecordBatch
from pdt.terms import Loss, PlanCondition
from pdt.training.rollout import Rollout, roll_out
from pdt.training.trunk_states import TrunkReader, TrunkStates

WITHOUT_ROLLOUT = frozenset({Loss.PLAN, Loss.ROUTE, Loss.ORDER, Loss.POINT})
NOTE_LOSSES = frozenset({Loss.NOTE, Loss.COMMITMENT, Loss.CODEBOOK, Loss.USAGE})


Parts = dict[Loss, Tensor]


@dataclass(frozen=True)
class Computed:
    """The losses by name, and what is watched besides."""

    parts: Parts
    usage_deficit_M: Tensor | None = None
    code_counts_MC: Tensor | None = None
    """How often the notes of the batch chose each code."""
    plans_apart: Tensor | None = None
    """The share of documents whose learned plans are, as `plans_apart` says."""
    rolled_out: bool = False
    """Were the sections written, or the prompt alone read?"""


def compute_losses(
    model: ParallelDecoder,
    batch: RecordBatch,
    plan: PlanCondition,
    counted: Collection[Loss],
    trunk: TrunkReader | None = None,
) -> Computed:
    """The losses of `counted`; what none of them needs is not run.

    `trunk` reads the documents below the fork; one with a cache gives the same states.

    With learned plans the planner's outlines go to the lanes of the teacher plans they match, and
    all that follows is in the teacher's lane order.

    Paper: §5.1 to §5.3, §6.
    """
    rolls_out = bool(set(counted) - WITHOUT_ROLLOUT)
    states = (trunk or TrunkReader(model)).read(batch, with_targets=rolls_out)
    return losses_above_the_fork(model, batch, states, plan, counted)


def losses_above_the_fork(
    model: ParallelDecoder,
    batch: RecordBatch,
    states: TrunkStates,
    plan: PlanCondition,
    counted: Collection[Loss],
) -> Computed:
    """`compute_losses` from the trunk's states on: all that has a gradient."""
    planned = _plan(model, states.prompt, batch, plan, counted)
    plans, parts = planned.plans, dict(planned.parts)
    if Loss.ROUTE in counted:
        parts[Loss.ROUTE] = _route(model, batch, plans)
    if states.fork_BKTD is None:
        return Computed(parts, plans_apart=planned.apart)
    frontier = model.open_lanes(states.prompt, plans)
    rollout = roll_out(model, frontier, batch.section_tokens_BKT, fork_BKTD=states.fork_BKTD)
    parts |= _execution_losses(model, batch, plans, rollout, counted)
    notes = None
    if NOTE_LOSSES & set(counted) and rollout.bus.blocks:
        notes = note_losses(model, rollout.bus)
        parts |= {loss: part for loss, part in notes.parts.items() if loss in counted}
    if Loss.READ_OUT in counted and rollout.bus.blocks:
        edges = coined_edges(batch, model.config.lanes.block_tokens)
        parts[Loss.READ_OUT] = read_out(model, rollout.bus, edges)
    return Computed(
        parts,
        usage_deficit_M=None if notes is None else notes.usage_deficit_M,
        code_counts_MC=None if notes is None else notes.code_counts_MC,
        plans_apart=planned.apart,
        rolled_out=True,
    )


@dataclass(frozen=True)
class _Planned:
    """The plans that the lanes are given, and what the planner's own cost."""

    plans: PlanSet
    parts: Parts
    apart: Tensor | None = None


def _plan(
    model: ParallelDecoder,
    prompt: Prompt,
    batch: RecordBatch,
    plan: PlanCondition,
    counted: Collection[Loss],
) -> _Planned:
    if plan is PlanCondition.ORACLE and not {Loss.PLAN, Loss.ORDER, Loss.POINT} & set(counted):
        return _Planned(oracle_plans(model, prompt, batch), {})
    predicted = model.plan(prompt)
    assert predicted.validity_BKN is not None
    targets = plan_targets(model, prompt, batch)
    matching = match_plans(
        predicted.nodes_BKNP, predicted.validity_BKN, targets, batch.node_valid_BKN
    )
    learned = predicted.select(matching.predicted_of_teacher_BK)
    parts: Parts = {}
    apart = None
    if Loss.PLAN in counted:
        parts[Loss.PLAN] = matching.loss
        apart = plans_apart(predicted.nodes_BKNP, targets, batch.node_valid_BKN)
    if Loss.ORDER in counted:
        parts[Loss.ORDER] = order_loss(learned.scores_BK, batch.lane_at_position_BK)
    if Loss.POINT in counted:
        parts[Loss.POINT] = _point(learned, targets, batch)
    if plan is PlanCondition.ORACLE:
        learned = oracle_plans(model, prompt, batch)
    return _Planned(learned, parts, apart)


def _point(learned: PlanSet, targets_BKNP: Tensor, batch: RecordBatch) -> Tensor:
    """Where a planner says which places it points at, those; else how near its nodes are."""
    if learned.places_BKNT is None:
        return point_loss(learned.nodes_BKNP, targets_BKNP, batch.node_valid_BKN)
    return place_loss(
        learned.places_BKNT, batch.fact_start_BF, batch.owner_lane_BF, batch.owner_node_BF
    )


def _route(model: ParallelDecoder, batch: RecordBatch, plans: PlanSet) -> Tensor:
    route = model.heads.route
    return route_loss(
        route(plans.nodes_BKNP, batch.fact_embeddings_BFE),
        route(plans.nodes_BKNP, batch.negative_embeddings_BFE),
        batch.owner_lane_BF,
        batch.owner_node_BF,
        batch.node_valid_BKN,
    )


def _execution_losses(
    model: ParallelDecoder,
    batch: RecordBatch,
    plans: PlanSet,
    rollout: Rollout,
    counted: Collection[Loss],
) -> Parts:
    """What the written blocks cost; a head that no loss of `counted` reads is not run."""
    h_BKUD, heads = rollout.h_BKUD, model.heads
    parts: Parts = {}
    if Loss.TOKEN in counted:
        parts[Loss.TOKEN] = token_loss(
            rollout.scores_BKT,
            batch.token_valid_BKT,
            (batch.dependency_token_BKT, model.config.objective.dependency_token),
            (batch.fact_begin_BKT, model.config.objective.fact_begin),
        )
    if Loss.PROGRESS in counted:
        progress = heads.progress(h_BKUD, plans.nodes_BKNP)
        parts[Loss.PROGRESS] = progress_loss(progress, batch.active_node_BKU, batch.node_valid_BKN)
    if Loss.FACT_WRITE in counted:
        writes = heads.fact_write(h_BKUD, batch.fact_embeddings_BFE)
        parts[Loss.FACT_WRITE] = fact_write_loss(writes, batch.role_BKUF)
    return parts


@dataclass(frozen=True)
class NoteEdges:
    """Words that lanes take from a sibling's note: whose, of which block, how many blocks late."""

    owner_BJ: Tensor
    block_BJ: Tensor
    lag_BJ: Tensor
    tokens_BJ: Tensor
    """The word itself."""
    valid_BJ: Tensor


def read_out(model: ParallelDecoder, bus: NotesBus, edges: NoteEdges) -> Tensor:
    """Each edge: the owner's note, read alone by every SNC, through the shared head."""
    notes_BUKE = torch.stack([note.vectors_BKE for note in bus.blocks], dim=1)
    if edges.valid_BJ.shape[1] == 0:  # no document of the batch has a dependency
        return notes_BUKE.new_zeros(())
    row = torch.arange(len(notes_BUKE), device=notes_BUKE.device)[:, None]
    note_BJE = notes_BUKE[row, edges.block_BJ, edges.owner_BJ]
    reads = [
        layer.snc.read_out(note_BJE, edges.owner_BJ, edges.lag_BJ) for layer in model.lane_layers
    ]
    h_BJD = torch.stack(reads).sum(0)
    logits_BJV = model.logits(h_BJD[:, None].to(model.trunk.norm.weight.dtype))[:, 0]
    return read_out_loss(logits_BJV, edges.tokens_BJ, edges.valid_BJ)


def coined_edges(batch: RecordBatch, block_tokens: int) -> NoteEdges:
    """The checked edges of the records whose word nothing but a note can tell."""
    dependency_BJ = batch.edge_dependency_BJ.clamp(min=0)
    owner_BJ, block_BJ, receiver_BJ = (
        of_BR.clamp(min=0).gather(1, dependency_BJ)
        for of_BR in (
            batch.dependency_owner_BR,
            batch.dependency_owner_block_BR,
            batch.dependency_receiver_BR,
        )
    )
    row = torch.arange(len(owner_BJ), device=owner_BJ.device)[:, None]
    token_BJ = batch.edge_token_BJ.clamp(min=0)
    return NoteEdges(
        owner_BJ,
        block_BJ,
        (token_BJ // block_tokens - block_BJ).clamp(min=1),
        batch.section_tokens_BKT[row, receiver_BJ, token_BJ],
        batch.edge_valid_BJ & batch.edge_coined_BJ,
    )


@dataclass(frozen=True)
class NoteLosses:
    """`NOTE_LOSSES` by name, and how the codes were used."""

    parts: Parts
    usage_deficit_M: Tensor
    code_counts_MC: Tensor


def note_losses(model: ParallelDecoder, bus: NotesBus) -> NoteLosses:
    """What notes teach: they are told apart, near their codes, and use all of them. Paper: §5.2."""
    vq, M = model.note_writer.vq, model.config.notes.codebooks
    written_K = [note.written_BKE for note in bus.blocks]
    written = torch.cat([w for w in written_K if w is not None], dim=1)  # [B, W, E]
    vectors = torch.cat([note.vectors_BKE for note in bus.blocks], dim=1)
    codes = torch.cat([note.codes_BKM for note in bus.blocks], dim=1)
    sent = torch.cat([note.published_BK for note in bus.blocks], dim=1)
    rows = vq.decode(codes)  # the same values as `vectors`, with the codebook's gradient
    deficit_M = usage_deficit(written, codes, vq.codebooks, sent)
    temperature = model.config.objective.note_temperature
    parts = {
        Loss.NOTE: note_loss(vectors, written, sent, temperature),
        Loss.COMMITMENT: commitment_loss(written, rows, sent, M),
        Loss.CODEBOOK: codebook_loss(written, rows, sent, M),
        Loss.USAGE: deficit_M.mean(),
    }
    counts_MC = code_counts(codes, sent, vq.codebooks.shape[1])
    return NoteLosses(parts, deficit_M.detach(), counts_MC)
