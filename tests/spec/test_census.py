"""Table 4, to the digit, from the configuration alone."""

import pytest

from pdt.config import PdtConfig, load_config
from pdt.model.cards import CARDS, predict
from pdt.model.census import (
    BF16,
    GiB,
    expanded_prompt_cache,
    inference_memory,
    meta_model,
    take_census,
    traffic,
)
from pdt.training.memory import training_memory
from tests.conftest import ROOT, open_model


@pytest.mark.paper("Table 4", "Appendix A")
def test_the_census_is_table_four_to_the_digit() -> None:
    census = take_census(load_config("canonical"))
    assert census.shared_total == 2_811_298_304
    assert census.physical_total == 3_633_509_376
    assert census.coordination_total == 84_132_905
    assert census.total == 6_528_940_585
    assert census.coordination == {
        "planner": 9_733_634,
        "plan memory": 131_840,
        "Plan-KV": 12 * 2_889_729,
        "SNC": 12 * 2_889_218,
        "note writer": 655_616,
        "codebooks": 65_536,
        "heads": 4_198_915,
    }


@pytest.mark.paper("Eq. 6", "§3.6")
@pytest.mark.parametrize(("fork", "ceiling"), [(24, 1.87), (28, 2.14), (32, 2.50)])
def test_weight_traffic_bounds_the_gain_below_the_span_reduction(fork: int, ceiling: float) -> None:
    weights = traffic(load_config("canonical", overrides=[f"lanes.fork_layer={fork}"]))
    assert round(weights.ceiling, 2) == ceiling


def test_smollm2_at_two_thirds_has_the_ceiling_of_the_issue() -> None:
    assert round(traffic(load_config("smollm2-135m")).ceiling, 2) == 1.97


RANK_16 = ["lanes.bank=low_rank", "lanes.rank=16"]


@pytest.mark.parametrize(
    ("preset", "lanes", "ceiling"),
    [("canonical", 33_223_680, 2.98), ("smollm2-135m", 4_919_040, 2.93)],
)
def test_changes_of_low_rank_raise_the_ceiling_to_nearly_the_lanes(
    preset: str, lanes: int, ceiling: float
) -> None:
    full, cheap = load_config(preset), load_config(preset, overrides=RANK_16)
    census = take_census(cheap)
    assert census.physical_total == lanes
    assert round(traffic(cheap, census).ceiling, 2) == ceiling
    # One lane owned its projections and its norms; the projections are now everybody's.
    kept = take_census(full).physical_total // 3 - (
        census.shared_total - take_census(full).shared_total
    )
    norms = sum(
        p.numel()
        for n, p in meta_model(full).lanes.named_parameters()
        if "norm" in n and ".decoder." in n
    )
    assert kept == norms // 3


def test_a_canonical_document_trains_on_a_24_gb_card_at_rank_16() -> None:
    size = {"prompt_tokens": 7000, "section_tokens": 1000}
    full, cheap = (load_config("canonical", overrides=bank) for bank in ([], RANK_16))
    assert training_memory(full, take_census(full), **size).total > 80e9
    assert training_memory(cheap, take_census(cheap), **size).total < 24e9


def test_smollm2_lanes_of_rank_16_are_shipped_in_twelve_megabytes() -> None:
    half = 2
    config = load_config("smollm2-135m", overrides=RANK_16)
    assert take_census(config).physical_total * half < 12e6


@pytest.mark.parametrize("bank", [[], RANK_16])
@pytest.mark.parametrize("preset", ["tiny", "nano"])
def test_the_census_counts_what_is_really_there(preset: str, bank: list[str]) -> None:
    config = load_config(preset, overrides=bank)
    model = open_model(config)
    assert take_census(config).total == sum(p.numel() for p in model.parameters())


def test_an_untied_embedding_is_looked_up_and_not_read_through() -> None:
    tied, untied = (
        load_config("tiny", overrides=[f"trunk.shape.tied_head={flag}"])
        for flag in ("true", "false")
    )
    assert traffic(tied) == traffic(untied)
    assert take_census(untied).total > take_census(tied).total


@pytest.mark.paper("§3.1")
def test_the_shared_prompt_cache_is_one_copy_and_the_expanded_one_is_one_a_lane() -> None:
    config = load_config("canonical")
    memory = inference_memory(config, take_census(config), prompt_tokens=4000, section_tokens=1000)
    shared = memory.parts["prompt cache below the fork (shared)"]
    assert expanded_prompt_cache(config, prompt_tokens=4000) == 3 * shared
    # 24 layers, 8 heads of 128, keys and values, two bytes each.
    assert shared == 4000 * 24 * 2 * 8 * 128 * 2


@pytest.mark.paper("Appendix A")
def test_more_devices_share_masters_and_moments_and_hold_the_views_whole() -> None:
    config = load_config("canonical")
    one, eight, sixteen = (training_parts(config, gpus) for gpus in (1, 8, 16))
    trained = 3_633_509_376 + 84_132_905
    assert one["FP32 masters (in shards)"] == trained * 4
    assert eight["FP32 masters (in shards)"] == -(-trained // 8) * 4
    assert eight["AdamW moments (FP32, in shards)"] == 2 * eight["FP32 masters (in shards)"]
    for name in ("trunk weights (BF16, frozen)", "trained weights (BF16 views, whole)"):
        assert one[name] == eight[name] == sixteen[name]
    # With sixteen ranks each takes one batch of a step's sixteen: there is no sum to keep.
    assert eight["sum of gradients (FP32, whole)"] > 0
    assert sixteen["sum of gradients (FP32, whole)"] == 0


def test_a_trunk_in_shards_leaves_its_embedding_whole_on_every_device() -> None:
    whole, sharded = (
        training_parts(load_config("canonical", overrides=[f"training.shard_trunk={flag}"]), 8)
        for flag in ("false", "true")
    )
    name = "trunk weights (BF16, frozen)"
    assert 151936 * 2560 * 2 < sharded[name] < whole[name] / 2
    assert {k: v for k, v in whole.items() if k != name} == {
        k: v for k, v in sharded.items() if k != name
    }


def training_parts(config: PdtConfig, gpus: int) -> dict[str, int]:
    census = take_census(config)
    return training_memory(config, census, prompt_tokens=6000, section_tokens=1000, gpus=gpus).parts


@pytest.mark.parametrize(
    ("row", "preset", "sharded"),
    [
        ("**canonical", "canonical", "false"),
        ("qwen3-14b", "qwen3-14b", "true"),
        ("smollm2-135m |", "smollm2-135m", "false"),
    ],
)
def test_the_memory_on_the_scale_page_is_the_census(row: str, preset: str, sharded: str) -> None:
    scale = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (line,) = (line for line in scale.splitlines() if line.startswith(f"| {row}"))
    written = [float(cell.strip(" *")) for cell in line.split("|")[2:5]]
    config = load_config(preset, overrides=[f"training.shard_trunk={sharded}"])
    found = [sum(training_parts(config, gpus).values()) / GiB for gpus in (1, 8, 16)]
    assert written == pytest.approx(found, abs=0.05)


def test_a_card_is_predicted_no_more_than_its_memory_can_read() -> None:
    config = load_config("canonical")
    census = take_census(config)
    weights = traffic(config, census)
    for card, one in zip(CARDS, predict(config, census), strict=True):
        bytes_a_second = one.packed / config.lanes.count * weights.packed_round * BF16
        assert bytes_a_second <= card.gigabytes_per_second * 1e9
        assert one.packed / one.serial == pytest.approx(weights.ceiling, rel=0.02)
        assert one.fits == (census.total * 2 <= card.gigabytes * 1e9)
