"""Six checks before a larger trunk: each passes what is whole, and finds a planted fault."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from pdt.evaluation.generate.batches import HeldOutBatch, batch_of, held_out_pairs, teacher_prose
from pdt.evaluation.screens.exact import ExactScreen
from pdt.model.attention import Segment
from pdt.model.cache import SuffixBuffer, Taken
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import MANIFEST, read_json_object, sha256_file, write_json
from pdt.records.batch import RecordShards
from pdt.screen.scale_checks import (
    DELIVERED,
    OTHERS_SAY,
    OWNERS_SAY,
    cache_differences,
    falling,
    head_losses,
    labels_that_differ,
    not_learned,
    ownership,
    plan_worth,
    routed,
    shared_documents,
    steps_of_run,
)
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tests.conftest import open_model
from tests.support.evaluations import chronicle_documents, chronicle_shards, small_config

pytestmark = pytest.mark.paper("§7.4")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> RecordShards:
    return chronicle_shards(tmp_path_factory.mktemp("records"))[0]


@pytest.fixture(scope="module")
def batch(shards: RecordShards) -> HeldOutBatch:
    tokenizer = load_tokenizer(shards.config.records.tokenizer)
    return batch_of(held_out_pairs(shards, tokenizer, documents=2))


@pytest.fixture
def model() -> ParallelDecoder:
    found = open_model(small_config())
    found.tokenizer = load_tokenizer(found.config.records.tokenizer)
    return found.eval()


def fit_manifest(directory: Path) -> None:
    """Name the files as they are now."""
    manifest = read_json_object(directory / MANIFEST)
    for name, file in manifest["files"].items():
        path = directory / name
        file |= {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    write_json(directory / MANIFEST, manifest)


def test_data_alignment_finds_labels_that_a_document_does_not_give(
    shards: RecordShards, tmp_path: Path
) -> None:
    assert labels_that_differ(shards, 4) == (4, [])
    damaged, _ = chronicle_shards(tmp_path)
    for shard in damaged.shards:
        table = pq.read_table(shard.path)
        place = table.column_names.index("owner_lane_F")
        turned = [[(lane + 1) % 3 for lane in row] for row in table["owner_lane_F"].to_pylist()]
        column = pa.array(turned, type=table["owner_lane_F"].type)
        pq.write_table(table.set_column(place, table.schema.field(place), column), shard.path)
    fit_manifest(tmp_path / "records")  # else the changed bytes alone are refused
    looked, differences = labels_that_differ(RecordShards(tmp_path / "records"), 4)
    assert looked == 4 and len(differences) >= 4 and "owner_lane" in differences[0]


def test_data_alignment_finds_documents_that_are_judged_and_trained_on(
    shards: RecordShards, tmp_path: Path
) -> None:
    other, _ = chronicle_shards(tmp_path, split=Split.TRAIN)
    assert shared_documents(other, shards) == 0
    assert shared_documents(shards, shards) == len(chronicle_documents(4))


def test_ownership_labels_finds_owners_that_are_turned(shards: RecordShards) -> None:
    tokenizer = load_tokenizer(shards.config.records.tokenizer)
    screen = ExactScreen()
    judged = [
        (document, screen.judge(document, texts))
        for document, texts in teacher_prose(shards, tokenizer, documents=4)
    ]
    whole = ownership(judged)
    assert whole["owners"] >= OWNERS_SAY and whole["others"] <= OTHERS_SAY
    turned = [
        (
            document.model_copy(
                update={
                    "facts": tuple(
                        f.model_copy(update={"owner_lane": (f.owner_lane + 1) % 3})
                        for f in document.facts
                    )
                }
            ),
            found,
        )
        for document, found in judged
    ]
    fault = ownership(turned)
    assert fault["owners"] < OWNERS_SAY and fault["others"] > OTHERS_SAY


def test_routing_heads_finds_heads_that_guess(model: ParallelDecoder, batch: HeldOutBatch) -> None:
    guess = {"route_guess": 0.69, "fact_write_guess": 1.0}
    assert routed({"route": 0.1, "fact_write": 0.2, **guess})
    assert not routed({"route": 0.6, "fact_write": 0.2, **guess})
    with torch.no_grad():
        for name, parameter in model.heads.named_parameters():
            if "route" in name or "fact" in name:
                parameter.zero_()
        found = head_losses(model, batch)
    assert found["route"] == pytest.approx(found["route_guess"], abs=1e-4)
    assert found["fact_write"] == pytest.approx(found["fact_write_guess"], abs=1e-4)
    assert not routed(found)


def lines(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [
        {"kind": "step", "step": n, "stage": 0, "gradient_norm": 1.0, "token": 3.0 - n / count}
        | changes
        for n in range(count)
    ]


def test_optimization_finds_missing_steps_wrong_numbers_and_a_loss_that_does_not_fall() -> None:
    whole = lines(20)
    problems, evidence = steps_of_run(whole, 20)
    assert not problems and evidence["steps"] == 20
    assert falling([line["token"] for line in whole])[0]
    assert "are not the steps 0 to 19" in steps_of_run(whole[:7] + whole[8:], 20)[0][0]
    broken = [line | {"token": math.nan} if line["step"] == 3 else line for line in whole]
    assert steps_of_run(broken, 20)[0] == ["step 3 has a number that is none"]
    assert steps_of_run(lines(20, gradient_norm=0.0), 20)[0] == ["20 steps had no gradient"]
    assert not falling([2.0 + n / 20 for n in range(20)])[0]
    assert not falling([])[0]
    assert not_learned([2.0, 1.0]) == []
    assert not_learned([1.0, 2.0]) == ["the token loss went from 1.000 to 2.000"]
    (never,) = not_learned([])
    assert "no two steps trained the lanes" in never


def test_cache_behaviour_finds_a_cache_that_keeps_other_keys(
    model: ParallelDecoder, batch: HeldOutBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with torch.inference_mode():
        compared, differ, _ = cache_differences(model, batch)
        assert compared > 0 and differ == 0
        whole = SuffixBuffer.__init__

        def turned(
            self: SuffixBuffer, prompt: Segment, lanes: int, capacity: int, taken: Taken
        ) -> None:
            other = Segment(prompt.k.flip(3), prompt.v, prompt.valid_BS)
            whole(self, other, lanes, capacity, taken)

        monkeypatch.setattr(SuffixBuffer, "__init__", turned)
        assert cache_differences(model, batch)[1] > 0


def test_plan_delivery_finds_a_plan_that_does_not_arrive_and_one_that_arrives_elsewhere(
    model: ParallelDecoder, batch: HeldOutBatch
) -> None:
    with torch.inference_mode():
        assert plan_worth(model, batch)["leak"] == 0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "plan_kv.o_proj" in name:
                parameter.zero_()
    with torch.inference_mode():
        found = plan_worth(model, batch)
    assert found["worth"] == 0 < DELIVERED and found["leak"] == 0
