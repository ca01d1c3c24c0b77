"""A whole evaluation on tiny untrained models: every condition, every file, every table."""

from pathlib import Path

import pytest
import torch

from pdt.evaluation.conditions import COINED, GENERATED, SCORED, Weights
from pdt.evaluation.exact import ExactScreen
from pdt.evaluation.report import conclude, write_report
from pdt.evaluation.results import Raw, Results, read_raw, read_results
from pdt.evaluation.run import Evaluation
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordShards
from tests.conftest import open_model
from tests.evaluations import chronicle_shards, small_config, small_settings

Ran = tuple[Raw, Results, Path]


def small_models() -> dict[Weights, ParallelDecoder]:
    bus = open_model(small_config())
    control = random_model(small_config("notes.condition=self_only"))
    control.load_state_dict(bus.state_dict())
    return {Weights.BUS: bus, Weights.SELF_ONLY: control}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> RecordShards:
    return chronicle_shards(tmp_path_factory.mktemp("corpus"), 4)[0]


@pytest.fixture(scope="module")
def ran(corpus: RecordShards, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    torch.manual_seed(0)
    settings = small_settings(corpus.config)
    evaluation = Evaluation(corpus, small_models(), settings, {"exact": ExactScreen()})
    raw = evaluation.run(*evaluation.batches())
    results = conclude(raw, settings, {"bus": "0" * 64})
    out = tmp_path_factory.mktemp("result") / "out"
    write_report(out, raw, results, config={}, inputs={})
    return raw, results, out


@pytest.mark.paper("§7.1", "Table 3")
def test_every_condition_writes_scores_and_coins(ran: Ran) -> None:
    raw, results, _ = ran
    coined = sum(bool(document.choices) for document in raw.documents)
    assert coined >= 2
    assert {row.condition for row in raw.written} == {c.name for c in GENERATED}
    assert len(raw.written) == 4 * len(GENERATED)
    assert {row.condition for row in raw.likelihoods} == {c.name for c in SCORED}
    assert {row.condition for row in raw.coined} == {c.name for c in COINED}
    assert len(raw.coined) == coined * len(COINED)
    assert len(raw.judgments) == len(raw.written)
    assert [judged.measure is not None for judged in results.gates[:9]] == [True] * 9


@pytest.mark.paper("§7.3", "Eq. 10")
def test_removed_notes_and_a_closed_gate_are_one_condition_and_others_differ(ran: Ran) -> None:
    raw, _, _ = ran
    nll = {(row.condition, row.record_id): row.nll for row in raw.likelihoods}
    name = raw.documents[0].record_id
    assert nll["no_dynamic", name] == nll["closed_gate", name]
    for other in ("no_dynamic", "mutated", "exchanged", "scrambled", "self_only"):
        assert nll["bus", name] != nll[other, name], other


@pytest.mark.paper("§7.3")
def test_the_intact_bus_scores_what_training_scores(ran: Ran, corpus: RecordShards) -> None:
    """The same rollout as the trainer's, with learned plans in the teacher's order."""
    from pdt.terms import Loss, PlanCondition
    from pdt.training.losses import compute_losses

    raw, _, _ = ran
    model = small_models()[Weights.BUS]
    rows = [row for row in raw.likelihoods if row.condition == "bus"]
    batch = next(corpus.batches(4))
    with torch.inference_mode():
        loss = compute_losses(model, batch, PlanCondition.LEARNED, {Loss.TOKEN}).parts[Loss.TOKEN]
    means = [sum(map(sum, row.nll)) / sum(map(len, row.nll)) for row in rows]
    assert sum(means) / len(means) == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.paper("§7.1")
def test_a_swap_moves_the_plans_and_their_addresses(ran: Ran) -> None:
    raw, _, _ = ran
    for row in raw.written:
        moved = row.lane_of_plan != row.unmoved_lane_of_plan
        assert moved == (row.condition == "swap")
        if row.condition == "oracle":
            assert row.lane_of_plan == (0, 1, 2)


def test_an_owner_that_writes_the_cue_coins_the_drawn_word(corpus: RecordShards) -> None:
    """The owner is made to write the cue; what follows is the draw, and only in that lane."""
    from pdt.evaluation.generate import draw_words
    from pdt.generation.loop import start
    from pdt.generation.settings import GenerationSettings

    evaluation = Evaluation(corpus, small_models(), small_settings(corpus.config), {})
    batch = evaluation.batches()[1][0]
    document, choice = batch.documents[0], batch.documents[0].choices[0]
    word = draw_words([document], 0)[0][choice.choice_id]
    tokens = choice.alternative_tokens[choice.alternatives.index(word)]
    cue = list(choice.cue_tokens)
    rules: list[dict[tuple[int, ...], tuple[int, ...]]] = [{choice.cue_tokens: tokens}, {}, {}]
    generation = start(
        evaluation.models[Weights.BUS],
        [[5, 6, 7]],
        GenerationSettings(max_tokens=12, stop_at_eos=False),
        tokenizer=evaluation.tokenizer,
        forced=[[cue, cue, cue]],
        continuations=[rules],
    )
    list(generation.events())
    written = [writer.tokens for writer in generation.writers[0]]
    assert tuple(written[0][len(cue) : len(cue) + len(tokens)]) == tokens
    free = [row[len(cue) : len(cue) + len(tokens)] for row in written[1:]]
    assert any(tuple(row) != tokens for row in free)


def test_draws_are_uniform_and_depend_on_the_seed(ran: Ran) -> None:
    from collections import Counter

    from pdt.evaluation.generate import draw_words

    document = next(d for d in ran[0].documents if d.choices)
    choice = document.choices[0]
    drawn = Counter(draw_words([document], seed)[0][choice.choice_id] for seed in range(400))
    assert set(drawn) == set(choice.alternatives)
    assert max(drawn.values()) < 400 / len(choice.alternatives) * 1.35


def test_the_stored_lines_are_the_raw_lines(ran: Ran) -> None:
    raw, results, out = ran
    assert read_raw(out) == raw
    assert read_results(out) == results
