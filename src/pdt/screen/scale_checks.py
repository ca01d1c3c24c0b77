"""What could have failed instead of the trunk, looked at in the run's own artefacts.

Each check ends with numbers and a sentence; its limit stands beside it.

Paper: §7.4.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean

import torch

from pdt.evaluation.generate.batches import HeldOutBatch, teacher_prose
from pdt.evaluation.generate.plans import given_plans, read_batch
from pdt.evaluation.generate.score import Scorer
from pdt.evaluation.generate.write import write_batch
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.protocol.conditions import BUS, ORACLE, Condition
from pdt.evaluation.screens.registry import open_screens
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.generation.interventions import SwapPlans, ZeroPlan
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.objective.fact_write import ROLES, fact_write_loss
from pdt.records.batch import RecordShards
from pdt.records.compile import Compiler
from pdt.records.schema import TrainingRecord
from pdt.records.verify import record_differences
from pdt.screen.scale import Audited, Check
from pdt.terms import Loss, PlanCondition
from pdt.tokenizer import load_tokenizer
from pdt.training.curriculum import stages_of
from pdt.training.losses import compute_losses
from pdt.training.rollout import roll_out
from pdt.training.watch.metrics import STEP, Metrics

OWNERS_SAY, OTHERS_SAY = 0.95, 0.05
"""Shares of the teacher's own facts: said by their owner, said by lanes with no part in it."""
HEADS = (Loss.ROUTE, Loss.FACT_WRITE)
LEARNED = 0.5
"""Of a guess's loss, a head's is at most this."""
TENTH = 10
NEAR_TIE = 1e-3
"""Of logits: two tokens so near may change places between two ways to sum."""
DELIVERED = 0.01
"""Nats a token that the plan must be worth, to the lane it was given to."""


def data_alignment(audited: Audited) -> Check:
    """Are the records what their documents give, and is nothing judged that was trained on?"""
    looked = 0
    differences: list[str] = []
    for shards in (audited.trained_on, audited.judged_on):
        count, found = labels_that_differ(shards, audited.documents)
        looked, differences = looked + count, differences + found
    shared = shared_documents(audited.trained_on, audited.judged_on)
    said = (
        f"{looked} records derived again, {len(differences)} labels differ"
        + (f" (first: {differences[0]})" if differences else "")
        + f"; {shared} documents are in both corpora"
    )
    return Check(
        name="data alignment",
        passed=not differences and not shared and looked > 0,
        said=said,
        evidence={"records": looked, "differences": len(differences), "shared": shared},
    )


def labels_that_differ(shards: RecordShards, documents: int) -> tuple[int, list[str]]:
    """How many records were derived again, and each label that is not what was stored."""
    compiler, looked, found = Compiler.load(shards.config), 0, []
    for record in islice(_records(shards), documents):
        looked += 1
        found += [
            f"{record.record_id} {field}" for field, _ in record_differences(record, compiler)
        ]
    return looked, found


def shared_documents(trained: RecordShards, judged: RecordShards) -> int:
    return len(_names(trained) & _names(judged))


def ownership_labels(audited: Audited) -> Check:
    """Does the teacher's own text say what the labels say: owners their facts, others not?"""
    shards = audited.judged_on
    tokenizer = load_tokenizer(shards.config.records.tokenizer)
    (screen,) = open_screens(ScreenChoice(audited.verdict.results.settings.screen))
    said = ownership(
        [
            (document, screen.judge(document, texts))
            for document, texts in teacher_prose(shards, tokenizer, documents=audited.documents)
        ]
    )
    return Check(
        name="ownership labels",
        passed=said["owners"] >= OWNERS_SAY and said["others"] <= OTHERS_SAY,
        said=f"in the teacher's own sections owners say {said['owners']:.1%} of their facts, "
        f"lanes without a part in them {said['others']:.1%}",
        evidence=said,
    )


def ownership(judged: Sequence[tuple[HeldOutDocument, LaneFacts]]) -> dict[str, float]:
    """How often a fact is mentioned by its owner, and by lanes that may not."""
    owners, others = [], []
    for document, found in judged:
        for number, fact in enumerate(document.facts):
            for lane, mentioned in enumerate(found.mentioned_KF):
                said = float(mentioned[number])
                if lane == fact.owner_lane:
                    owners.append(said)
                elif lane not in fact.reference_lanes and lane not in fact.permitted_lanes:
                    others.append(said)
    return {"owners": fmean(owners), "others": fmean(others or [0.0]), "facts": len(owners)}


def routing_heads(audited: Audited) -> Check:
    """Did the heads that route facts to nodes and to blocks learn, on documents not trained on?"""
    found = head_losses(audited.model, audited.batch)
    said = ", ".join(
        f"{loss.value} {found[loss.value]:.3f} of a guess's {found[f'{loss.value}_guess']:.3f}"
        for loss in HEADS
    )
    return Check(name="routing heads", passed=routed(found), said=said, evidence=found)


def head_losses(model: ParallelDecoder, batch: HeldOutBatch) -> dict[str, float]:
    """The heads' losses with the teacher's plans, and those of heads that know nothing."""
    role_BKUF = batch.records.role_BKUF
    parts = compute_losses(model, batch.records, PlanCondition.ORACLE, HEADS).parts
    at_chance = fact_write_loss(torch.zeros(*role_BKUF.shape, ROLES), role_BKUF)
    guesses = (math.log(2), at_chance.item())
    found = {loss.value: round(float(parts[loss]), 6) for loss in HEADS}
    return found | {
        f"{loss.value}_guess": round(guess, 6) for loss, guess in zip(HEADS, guesses, strict=True)
    }


def routed(found: Mapping[str, float]) -> bool:
    return all(found[loss.value] <= LEARNED * found[f"{loss.value}_guess"] for loss in HEADS)


def optimization(audited: Audited) -> Check:
    """Were all steps taken, was every number one, and did the lanes' token loss fall?"""
    training = audited.model.config.training
    problems, evidence = steps_of_run(audited.metrics, training.scaled(training.steps))
    wrote = {s.number for s in stages_of(training) if Loss.TOKEN in s.losses}
    tokens = [
        float(line[Loss.TOKEN.value])
        for line in audited.metrics
        if line["kind"] == STEP and line["stage"] in wrote and Loss.TOKEN.value in line
    ]
    _, first, last = falling(tokens)
    evidence |= {"token_loss_first": first, "token_loss_last": last}
    problems += not_learned(tokens)
    said = "; ".join(problems) or (
        f"{evidence['steps']:.0f} steps, every number finite, token loss {first:.3f} to {last:.3f}"
    )
    return Check(name="optimization", passed=not problems, said=said, evidence=evidence)


def not_learned(tokens: Sequence[float]) -> list[str]:
    """Why the lanes' token loss is none that fell."""
    fell, first, last = falling(tokens)
    if fell:
        return []
    if len(tokens) < 2:
        return ["no two steps trained the lanes, so that no token loss could fall"]
    return [f"the token loss went from {first:.3f} to {last:.3f}"]


def falling(values: Sequence[float]) -> tuple[bool, float, float]:
    """Is the mean of the last tenth below that of the first? None at all fell nowhere."""
    share = max(1, len(values) // TENTH)
    if len(values) < 2:
        return False, 0.0, 0.0
    first, last = fmean(values[:share]), fmean(values[-share:])
    return last < first, round(first, 6), round(last, 6)


def steps_of_run(metrics: Sequence[Metrics], steps: int) -> tuple[list[str], dict[str, float]]:
    """What is wrong with the lines of a run, and what they come to."""
    lines = [line for line in metrics if line["kind"] == STEP]
    problems = []
    if [line["step"] for line in lines] != list(range(steps)):
        problems.append(f"{len(lines)} lines of metrics are not the steps 0 to {steps - 1}")
    wrong = [
        line["step"]
        for line in lines
        if any(isinstance(v, float) and not math.isfinite(v) for v in line.values())
    ]
    if wrong:
        problems.append(f"step {wrong[0]} has a number that is none")
    norms = [float(line["gradient_norm"]) for line in lines]
    still = sum(norm == 0 for norm in norms)
    if still:
        problems.append(f"{still} steps had no gradient")
    return problems, {"steps": len(lines), "largest_gradient_norm": max(norms, default=0.0)}


def cache_behaviour(audited: Audited) -> Check:
    """Would the model, read from the beginning, choose the tokens it wrote from its caches?"""
    compared, other, gap = cache_differences(audited.model, audited.batch)
    return Check(
        name="cache behaviour",
        passed=compared > 0 and other == 0,
        said=f"{compared} tokens written with caches, {other} of them not what the same text "
        f"gives without (largest gap {gap:.2g} of a logit)",
        evidence={"tokens": compared, "different": other, "largest_gap": gap},
    )


def cache_differences(model: ParallelDecoder, batch: HeldOutBatch) -> tuple[int, int, float]:
    """Tokens compared, tokens that differ by more than a near tie, and the largest gap."""
    tokenizer = model.tokenizer
    assert tokenizer is not None, "a model that was judged has its tokenizer"
    read = read_batch(model, batch.records)
    plans = given_plans(model, batch.records, read)
    blocks = 2 * model.config.lanes.block_tokens + 2  # past a first note, and past its reading
    settings = GenerationSettings(max_tokens=blocks, stop_at_eos=False)
    written, _ = write_batch(model, tokenizer, batch, ORACLE, plans, settings, read=read)
    tokens_BKT = torch.tensor([[lane.tokens for lane in row.lanes] for row in written])
    gaps: list[torch.Tensor] = []

    def gap(logits_BKTV: torch.Tensor, tokens_BKT: torch.Tensor) -> torch.Tensor:
        chosen = logits_BKTV.gather(-1, tokens_BKT[..., None])[..., 0]
        gaps.append(logits_BKTV.max(-1).values - chosen)
        return gaps[-1]

    roll_out(model, model.open_lanes(read, plans.plans), tokens_BKT, score=gap)
    found = torch.cat([part.flatten() for part in gaps])
    return found.numel(), int((found > NEAR_TIE).sum()), round(float(found.max()), 6)


def plan_delivery(audited: Audited) -> Check:
    """Is a lane's plan worth something to its own text, and nothing to another's before notes?"""
    evidence = plan_worth(audited.model, audited.batch)
    return Check(
        name="plan delivery",
        passed=evidence["worth"] >= DELIVERED and evidence["leak"] == 0,
        said=f"a lane's plan is worth {evidence['worth']:.4f} nats a token of its section; two "
        f"other lanes' plans exchanged change its first block by {evidence['leak']:.2g}",
        evidence=evidence,
    )


def plan_worth(model: ParallelDecoder, batch: HeldOutBatch) -> dict[str, float]:
    """Nats a token lost without the plan, and what lane 0's first block sees of others' plans."""
    read = read_batch(model, batch.records)
    scorer = Scorer(model, batch, given_plans(model, batch.records, read), read)
    whole = scorer.score(BUS)
    zero = scorer.score(Condition("zero", "zero", edits=(ZeroPlan(),)))
    others = scorer.score(Condition("others", "others", edits=(SwapPlans(1, 2),)))
    tau = model.config.lanes.block_tokens
    worth = [
        b - a
        for ours, theirs in zip(whole, zero, strict=True)
        for lane, bare in zip(ours.nll, theirs.nll, strict=True)
        for a, b in zip(lane, bare, strict=True)
    ]
    leak = [
        abs(b - a)
        for ours, theirs in zip(whole, others, strict=True)
        for a, b in zip(ours.nll[0][:tau], theirs.nll[0][:tau], strict=True)
    ]
    return {"worth": fmean(worth), "leak": max(leak), "tokens": len(worth)}


def _records(shards: RecordShards) -> Iterator[TrainingRecord]:
    for shard in shards.shards:
        for record in shard.records():
            if shards.split is None or record.split == shards.split:
                yield record


def _names(shards: RecordShards) -> set[str]:
    return {
        row["record_id"]
        for shard in shards.shards
        for row in shard.rows()
        if shards.split is None or row["split"] == shards.split
    }


CHECKS: tuple[Callable[[Audited], Check], ...] = (
    data_alignment,
    ownership_labels,
    routing_heads,
    optimization,
    cache_behaviour,
    plan_delivery,
)
"""In the paper's order. Paper: §7.4."""
