"""A screen is decided, costed and sealed before anything trains."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from pdt.cli import app
from pdt.config import load_config
from pdt.errors import BindingMismatch, ContractBroken, PdtError, UsageError
from pdt.model.build import random_model
from pdt.model.store import save_model
from pdt.screen.compile import Asked, compile_screen, decide
from pdt.screen.cost import cards, devices_for, document_flops, hours_on
from pdt.screen.design import design_names, load_design
from pdt.screen.manifest import SCREEN, SealedStart, read_screen, seal_of
from pdt.screen.start import drawn_anew, start_model, taken_over
from pdt.screen.variants import BASELINE, variants_of
from pdt.terms import Component, NotesCondition, Split
from tests.conftest import open_model
from tests.support.evaluations import small_config
from tests.support.screens import asked, small_records, small_screen, write_design


@pytest.mark.paper("Appendix A")
@pytest.mark.parametrize("preset", design_names())
def test_every_design_has_25_one_factor_variants_at_the_three_seeds(preset: str) -> None:
    design, baseline = load_design(preset), load_config(preset)
    variants = variants_of(design, baseline)
    assert design.preset == preset and design.seeds == (1729, 2718, 3141)
    assert len(variants) == 25 and variants[0].name == BASELINE
    for variant in variants[1:]:
        sections = {key.rpartition(".")[0] for key in variant.difference(baseline)}
        if variant.axis not in ("trunk", "learning rate"):  # these move several keys at once
            assert len(sections) == 1, variant.name
    assert sum(v.config.notes.condition is NotesCondition.SELF_ONLY for v in variants) == 1


@pytest.mark.paper("Appendix A")
def test_the_canonical_axes_are_those_of_reading_7() -> None:
    variants = variants_of(load_design("canonical"), load_config("canonical"))
    of = {(v.axis, v.level): v.config for v in variants}
    layers = {
        axis: sorted(c.upper_layers for (name, _), c in of.items() if name == axis)
        for axis in ("upper layers",)
    }
    assert layers == {"upper layers": [6, 18]}
    assert of["trunk", "qwen3-14b"].trunk.shape.width == 5120
    assert of["notes gate", "-6"].reads.notes_gate == -6.0
    assert of["learning rate", "0.0004"].training.optimizer.learning_rate == 4e-4
    assert {c.notes.codes for (axis, _), c in of.items() if axis == "codes"} == {128, 512}


def test_a_rate_moves_the_stages_own_rates_in_proportion() -> None:
    baseline = load_config("nano")
    found = {v.name: v.config for v in variants_of(load_design("nano"), baseline)}
    doubled = found["learning-rate-0.001"].training
    for ours, theirs in zip(doubled.stages, baseline.training.stages, strict=True):
        assert ours.learning_rate == pytest.approx(2 * (theirs.learning_rate or 0))


def test_a_level_that_is_the_baselines_own_is_refused(tmp_path: Path) -> None:
    axes = [{"name": "memory width", "key": "reads.memory_width", "levels": [32]}]
    design = write_design(tmp_path / "d.yaml", axes=axes)
    with pytest.raises(UsageError, match="memory width 32 is the baseline's own value"):
        decide(asked(design))


@pytest.mark.paper("Appendix A")
def test_an_edited_or_unsealed_screen_is_refused(tmp_path: Path) -> None:
    screen, out = small_screen(tmp_path)
    assert read_screen(out) == screen and len(screen.runs) == 6 and screen.comparisons == 2
    whole = json.loads((out / SCREEN).read_text())
    edits = {
        "a rate": lambda tree: tree["variants"][1]["config"]["training"]["optimizer"].update(
            learning_rate=1.0
        ),
        "a run": lambda tree: tree["runs"].pop(),
        "the corpus": lambda tree: tree["records"].update(digest="0" * 64),
        "the comparison": lambda tree: tree["design"]["compared"].update(confidence=0.5),
    }
    for what, edit in edits.items():
        tree = json.loads(json.dumps(whole))
        edit(tree)
        (out / SCREEN).write_text(json.dumps(tree))
        with pytest.raises(ContractBroken, match="changed after it was sealed"):
            read_screen(out)
        assert seal_of(tree) != whole["seal"], what
    del whole["seal"]
    (out / SCREEN).write_text(json.dumps(whole))
    with pytest.raises(ContractBroken, match="is not sealed"):
        read_screen(out)
    with pytest.raises(UsageError, match=r"holds no screen\.json"):
        read_screen(tmp_path)


def test_a_screen_names_config_difference_census_cost_corpus_code_and_comparison(
    tmp_path: Path,
) -> None:
    screen, _ = small_screen(tmp_path)
    variant = screen.variant("memory-width-16")
    assert variant.difference == {"reads.memory_width": (32, 16)}
    assert variant.census["total"] < screen.baseline.census["total"]
    assert variant.cost.training_flops < screen.baseline.cost.training_flops
    assert len({run.config_sha256 for run in screen.runs}) == 6
    assert "oracle.owner_recall" in screen.measured and "2 comparisons" in screen.comparison
    assert screen.records.digest != screen.held_out.digest and len(screen.code.digest) == 64
    for run in screen.runs:
        assert screen.config_of(run).training.seed == run.seed


def test_interactions_are_refused_before_a_report(tmp_path: Path) -> None:
    both = {"name": "both", "levels": {"memory width": 16, "notes": "self_only"}}
    with pytest.raises(UsageError, match="registered after a screen's report is sealed"):
        small_screen(tmp_path, interactions=[both])


def test_held_out_documents_must_be_enough(tmp_path: Path) -> None:
    train = small_records(tmp_path / "train", Split.TRAIN)
    with pytest.raises(UsageError, match="holds 0 documents of the split test"):
        compile_screen(asked(write_design(tmp_path / "d")), train, train, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_some_variant_cannot_take_over_is_drawn_anew_in_all(tmp_path: Path) -> None:
    save_model(open_model(small_config()), tmp_path / "model", with_trunk=True)
    base, narrow = small_config(), small_config("reads.memory_width=16")
    deep = small_config("planner.layers=4")
    kept = "notes.codebook_start=drawn"
    assert drawn_anew(tmp_path / "model", [base, narrow]) == ("note_writer", "plan_kv", "snc")
    assert drawn_anew(tmp_path / "model", [small_config(kept), deep_kept := small_config(
        kept, "planner.layers=4")]) == ("planner",)  # fmt: skip
    assert deep_kept.planner.layers == deep.planner.layers
    gates = [small_config(kept), small_config(kept, "reads.plan_gate=2.0")]
    assert drawn_anew(tmp_path / "model", gates) == (Component.PLAN_KV.value,)
    with pytest.raises(UsageError, match="throw its codes away"):
        drawn_anew(tmp_path / "model", [base, deep])
    with pytest.raises(BindingMismatch, match="cannot be the start"):
        drawn_anew(tmp_path / "model", [small_config("trunk.shape.width=64")])


def test_a_model_taken_over_whole_is_the_same_model(tmp_path: Path) -> None:
    for bank in ([], ["lanes.bank=low_rank", "lanes.rank=2"]):
        base = open_model(small_config(*bank))
        again = taken_over(base, base.config, 5, anew=())
        for (name, ours), (_, theirs) in zip(
            again.named_parameters(), base.named_parameters(), strict=True
        ):
            assert torch.equal(ours, theirs), name


def test_a_layer_keeps_its_weights_wherever_the_fork_is() -> None:
    base = open_model(small_config("trunk.shape.layers=3", "lanes.fork_layer=2"))
    lower = taken_over(
        base, small_config("trunk.shape.layers=3", "lanes.fork_layer=1"), 5, anew=("plan_kv",)
    )
    of = dict(base.named_parameters())
    mine = dict(lower.named_parameters())
    name = "self_attn.q_proj.weight"
    for lane in range(3):
        assert torch.equal(mine[f"lanes.0.decoder.{name}"][lane], of[f"trunk.layers.1.{name}"])
    assert torch.equal(mine[f"lanes.1.decoder.{name}"], of[f"lanes.0.decoder.{name}"])
    assert torch.equal(mine["lanes.1.snc.q_proj.weight"], of["lanes.0.snc.q_proj.weight"])
    assert not torch.equal(
        mine["lanes.1.plan_kv.q_proj.weight"], of["lanes.0.plan_kv.q_proj.weight"]
    )
    higher = dict(taken_over(lower, base.config, 5, anew=()).named_parameters())
    mean = mine[f"lanes.0.decoder.{name}"].mean(0)
    assert torch.allclose(higher[f"trunk.layers.1.{name}"], mean)


def test_a_low_rank_bank_opened_into_whole_projections_computes_the_same() -> None:
    base = open_model(small_config("lanes.bank=low_rank", "lanes.rank=2"))
    whole = taken_over(base, small_config(), 5, anew=())
    layer = base.lane_layers[0].decoder.self_attn.q_proj
    x = torch.randn(1, 3, 4, 32)
    assert torch.allclose(layer(x), whole.lane_layers[0].decoder.self_attn.q_proj(x), atol=1e-5)


def test_a_start_without_a_model_is_the_presets_own(tmp_path: Path) -> None:
    config = small_config()
    model = start_model(SealedStart(model=None, manifest_sha256=None), config, 7)
    for ours, theirs in zip(
        model.parameters(), random_model(config, seed=7).parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    assert model.tokenizer is not None


@pytest.mark.paper("Appendix A")
def test_an_estimate_gives_hours_by_card_and_says_that_it_is_a_prediction() -> None:
    done = CliRunner().invoke(app, ["screen", "compile", "--preset", "tiny", "--estimate"])
    assert done.exit_code == 0 and "A PREDICTION" in done.stdout
    done = CliRunner().invoke(
        app, ["screen", "compile", "--preset", "tiny", "--estimate", "--json"]
    )
    said = json.loads(done.stdout)
    assert said["prediction"] and said["runs"] == 75
    assert {row["card"] for row in said["cards"]} == {card.name for card in cards()}


def test_the_cost_grows_with_what_costs_and_memory_decides_the_cards() -> None:
    decided = decide(Asked("canonical"))
    cost = {variant.name: variant.cost for variant in decided.variants}
    h100 = next(card for card in cards() if card.name.startswith("H100"))
    assert hours_on(cost["upper-layers-6"], h100) < hours_on(cost[BASELINE], h100)
    assert hours_on(cost["trunk-qwen3-14b"], h100) > 2 * hours_on(cost[BASELINE], h100)
    assert devices_for(cost[BASELINE], h100) == 2  # docs/scale.md: one device holds 78.8 GiB
    assert devices_for(cost["trunk-qwen3-14b"], h100) is None


def test_the_planner_alone_costs_no_lane() -> None:
    from pdt.model.census import take_census

    config = load_config("nano")
    census = take_census(config)
    alone = document_flops(config, census, 200, 100, lanes_train=False)
    assert alone == document_flops(config, census, 200, 900, lanes_train=False)
    assert alone < document_flops(config, census, 200, 100, lanes_train=True) / 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--preset", "qwen3-14b", "--estimate"), "no design of a screen"),
        (("--preset", "canonical", "--short", "--estimate"), "has no short form"),
        (("--preset", "nano"), "Give RECORDS and --out"),
    ],
)
def test_a_screen_that_cannot_be_is_refused_in_a_word(
    arguments: tuple[str, ...], said: str
) -> None:
    done = CliRunner().invoke(app, ["screen", "compile", *arguments])
    assert isinstance(done.exception, PdtError) and said in str(done.exception)
