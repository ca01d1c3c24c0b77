"""Plan nodes made from the trunk's states, against plain loops over the source's passages."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.config import load_config
from pdt.config.model import FROM_BEGINNINGS
from pdt.errors import ConfigError
from pdt.model.build import random_model
from pdt.model.oracle import oracle_plans, plan_targets
from pdt.model.passages import OPENING_TOKENS, passages_in_plan_space
from pdt.model.pdt import ParallelDecoder
from pdt.model.planner import own_places
from pdt.model.prompt import Prompt
from pdt.records.batch import RecordBatch, collate
from pdt.records.compile import Compiler
from pdt.records.embed import Projection
from pdt.records.schema import TrainingRecord
from pdt.terms import NodeTarget, Split
from pdt.training.assignment import assign_lanes

FORMS = [form for form in NodeTarget if form is not NodeTarget.TEXT]


@pytest.fixture(scope="module")
def batch() -> RecordBatch:
    compiler = Compiler.load(load_config("nano"))
    dials = turn_dials("nano", ["openings=false", "divisions=[dealt]", "source_words=1"])
    chronicle = Chronicle(5, Split.TRAIN, dials, nano_meter())
    rows = []
    for document in chronicle.documents(3):
        record = compiler.compile(document.taught)
        assert isinstance(record, TrainingRecord), record
        rows.append(dict(record))
    return collate(rows)


def model_of(form: NodeTarget) -> ParallelDecoder:
    config = load_config("nano", overrides=[f"planner.targets={form}"])
    return random_model(config, seed=3)


def read(model: ParallelDecoder, batch: RecordBatch) -> Prompt:
    return model.read_prompt(batch.prompt_tokens_BS.clamp(min=0), batch.prompt_valid_BS.sum(1))


@pytest.mark.paper("§4.3")
@pytest.mark.parametrize("form", FORMS)
def test_a_node_is_what_the_trunk_says_of_the_passages_it_owns(
    form: NodeTarget, batch: RecordBatch
) -> None:
    model = model_of(form)
    targets_BKNP = plan_targets(model, read(model, batch), batch)
    config = model.config
    weight = torch.from_numpy(
        Projection(
            config.records.projection_seed,
            planner_width=config.planner.width,
            encoder_width=config.trunk.shape.width,
        ).weight_PE
    )
    for b in range(len(batch.record_ids)):
        tokens = batch.prompt_tokens_BS[b][batch.prompt_tokens_BS[b] >= 0]
        h = F.rms_norm(model.read_prompt(tokens[None]).h_BTD[0], (config.trunk.shape.width,))
        h = h - h.mean(0)
        nodes = torch.zeros_like(targets_BKNP[b])
        for f, lane in enumerate(batch.owner_lane_BF[b].tolist()):
            if lane < 0:
                continue
            start, stop = int(batch.fact_start_BF[b, f]), int(batch.fact_stop_BF[b, f])
            words = F.rms_norm(model.trunk.embed_tokens(tokens), (config.trunk.shape.width,))
            words = F.pad(words - words.mean(0), (0, 0, 0, 11))
            part = {
                NodeTarget.FIRST_WORDS: 0.87 ** torch.arange(12) @ words[start : start + 12],
                NodeTarget.BEFORE: h[start - 1],
                NodeTarget.OPENING: h[start : min(stop, start + OPENING_TOKENS)].mean(0),
                NodeTarget.PASSAGE: h[start:stop].mean(0),
            }[form]
            nodes[lane, int(batch.owner_node_BF[b, f])] += weight @ F.normalize(part, dim=0)
        torch.testing.assert_close(targets_BKNP[b], F.normalize(nodes, dim=-1), atol=2e-4, rtol=0)


@pytest.mark.parametrize("form", FROM_BEGINNINGS)
def test_a_planner_that_points_gives_nodes_that_own_the_places_it_points_at(
    form: NodeTarget, batch: RecordBatch
) -> None:
    config = load_config(
        "nano",
        overrides=[f"planner.targets={form}", "planner.points=true", "planner.prompt_layers=1"],
    )
    model = random_model(config, seed=3)
    prompt = read(model, batch)
    plans = model.plan(prompt)
    assert plans.places_BKNT is not None
    outside = batch.prompt_tokens_BS < 0
    assert (plans.places_BKNT.exp().sum(-1) - 1).abs().max() < 1e-5
    assert (plans.places_BKNT.exp() * outside[:, None, None]).abs().max() == 0
    place_BQ = own_places(plans.places_BKNT, plans.valid_BKN).flatten(1)
    stop_BQ = torch.minimum(place_BQ + OPENING_TOKENS, prompt.lengths_B[:, None])
    said = passages_in_plan_space(config, model.trunk, prompt, place_BQ, stop_BQ)
    torch.testing.assert_close(plans.nodes_BKNP.flatten(1, 2), said, atol=1e-5, rtol=1e-4)
    plans.nodes_BKNP.square().sum().backward()
    assert model.planner.point_to.weight.grad is not None, "the choice of a place has no gradient"


@pytest.mark.paper("§2.1")
def test_two_nodes_that_exist_never_point_at_one_place() -> None:
    """The surer one has it; a node that does not exist takes nothing from anybody."""
    log_p = torch.rand(6, 3, 2, 9).mul(4).log_softmax(-1)
    valid = torch.rand(6, 3, 2) < 0.7
    places = own_places(log_p, valid)
    for b in range(6):
        free, left = set(range(9)), [(k, n) for k in range(3) for n in range(2) if valid[b, k, n]]
        while left:
            _, at, node = max((log_p[b, k, n, t].item(), t, (k, n)) for k, n in left for t in free)
            assert places[b, node[0], node[1]] == at
            free.remove(at)
            left.remove(node)
    assert torch.equal(places[~valid], log_p.argmax(-1)[~valid])


def test_the_prompt_is_read_in_both_directions_where_the_planner_says_so(
    batch: RecordBatch,
) -> None:
    """What a place is pointed at for may stand behind it; padding and other documents do not."""
    config = load_config(
        "nano",
        overrides=["planner.targets=opening", "planner.points=true", "planner.prompt_layers=1"],
    )
    model = random_model(config, seed=3)
    tokens = batch.prompt_tokens_BS[:1, :40].clamp(min=0)
    other = tokens.clone()
    other[:, 39] += 1
    first, second = (model.plan(model.read_prompt(some)).places_BKNT for some in (tokens, other))
    assert first is not None and second is not None
    ratio = (first - second)[..., :39]
    assert (ratio - ratio.mean(-1, keepdim=True)).abs().max() > 1e-6
    padded = torch.cat([tokens, tokens], dim=1)
    both = model.plan(model.read_prompt(torch.cat([padded, padded]), torch.tensor([40, 80])))
    assert both.places_BKNT is not None
    torch.testing.assert_close(both.places_BKNT[:1, :, :, :40], first, atol=1e-4, rtol=1e-4)


def test_a_passage_whose_first_place_does_not_tell_it_cannot_be_pointed_at() -> None:
    with pytest.raises(ConfigError, match="says where a passage begins"):
        load_config("nano", overrides=["planner.targets=passage", "planner.points=true"])


def test_nodes_move_with_the_lanes_they_were_given_to(batch: RecordBatch) -> None:
    model = model_of(NodeTarget.PASSAGE)
    physical = torch.tensor([[2, 0, 1]] * len(batch.record_ids))
    moved = assign_lanes(batch, physical)
    before = oracle_plans(model, read(model, batch), batch).nodes_BKNP
    after = oracle_plans(model, read(model, moved), moved).nodes_BKNP
    torch.testing.assert_close(after[:, [2, 0, 1]], before)


def test_a_fact_that_no_lane_owns_is_in_no_node(batch: RecordBatch) -> None:
    model = model_of(NodeTarget.BEFORE)
    unowned = replace(batch, owner_lane_BF=torch.full_like(batch.owner_lane_BF, -1))
    assert plan_targets(model, read(model, unowned), unowned).abs().sum() == 0


def test_the_tokens_of_a_fact_are_its_quote() -> None:
    compiler = Compiler.load(load_config("nano"))
    for document in Chronicle(6, Split.TRAIN, turn_dials("nano"), nano_meter()).documents(5):
        record = compiler.compile(document.taught)
        assert isinstance(record, TrainingRecord)
        for f, fact in enumerate(document.taught.inventory.facts):
            start, stop = int(record.fact_start_F[f]), int(record.fact_stop_F[f])
            said = compiler.tokenizer.decode(record.prompt_tokens_S[start:stop].tolist())
            assert said.strip() == fact.quote.text
