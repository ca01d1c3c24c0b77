"""Drill documents: who names what, where, and who recalls it; and the drill as it is run."""

import contextlib
import random
from pathlib import Path

import pytest
import torch

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.chronicle.names import COINED
from pdt.config import PdtConfig, load_config
from pdt.errors import BindingMismatch, UsageError
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import check_manifest
from pdt.records.batch import RecordShards
from pdt.records.corpus import compile_corpus
from pdt.study.drill import Drill, read_bits
from pdt.study.drilling import Drilling, DrillRun
from pdt.terms import NotesCondition, Split
from pdt.tokenizer import load_tokenizer
from tests.conftest import open_model

BLOCK = 32


@pytest.fixture(scope="module")
def drill() -> Drill:
    tokenizer = load_tokenizer(load_config("nano").records.tokenizer)
    chronicle = Chronicle(0, Split.TRAIN, turn_dials("nano"), nano_meter())
    return Drill((d.taught for d in chronicle.documents(12)), tokenizer, BLOCK)


def small(condition: NotesCondition = NotesCondition.BUS) -> ParallelDecoder:
    config: PdtConfig = load_config(
        "nano",
        overrides=[
            "trunk.shape.layers=2",
            "trunk.shape.width=48",
            "trunk.shape.query_heads=2",
            "trunk.shape.kv_heads=2",
            "trunk.shape.head_width=24",
            "trunk.shape.feed_forward=64",
            "lanes.fork_layer=1",
            "notes.codes=16",
            f"notes.condition={condition.value}",
        ],
    )
    return random_model(config, seed=0)


@pytest.mark.parametrize("distance", [0, 5, 27])
def test_a_recalled_word_was_named_by_its_owner_near_the_end_of_its_block(
    drill: Drill, distance: int
) -> None:
    batch = drill.batch(random.Random(1), 8, distance=distance)
    edges, sections = batch.edges, batch.section_tokens_BKT
    assert sections.shape == (8, 3, 4 * BLOCK) and edges.owner_BJ.shape == (8, 12)
    seen = set()
    for b in range(8):
        for owner, block, word in zip(
            edges.owner_BJ[b], edges.block_BJ[b], edges.tokens_BJ[b], strict=True
        ):
            named = sections[b, owner, BLOCK * block : BLOCK * (block + 1)].tolist()
            assert named.count(word.item()) == 1
            seen.add(BLOCK - 1 - named.index(word.item()))
    assert max(seen) <= distance and (distance == 0 or len(seen) > 3)


def test_dependency_tokens_are_the_recalled_words_and_stand_nowhere_else(drill: Drill) -> None:
    batch = drill.batch(random.Random(2), 4, distance=3)
    words = {drill.tokenizer.encode(f" {word}").ids[0] for word in COINED}
    for b in range(4):
        marked = batch.section_tokens_BKT[b][batch.dependency_token_BKT[b]].tolist()
        assert sorted(marked) == sorted(batch.edges.tokens_BJ[b].tolist())
        for block in (1, 3):  # blocks that recall
            place = slice(BLOCK * block, BLOCK * (block + 1))
            unmarked = batch.section_tokens_BKT[b, :, place][
                ~batch.dependency_token_BKT[b, :, place]
            ]
            assert not words & set(unmarked.tolist())


@pytest.mark.slow
def test_a_killed_drill_goes_on_to_the_same_weights(drill: Drill, tmp_path: Path) -> None:
    weights = []
    for name, stops in (("whole", (4,)), ("killed", (2, 4))):
        for stop in stops:
            model = small()
            run = DrillRun(model, drill, Drilling(steps=4, save_steps=1))

            def until(step: int, said: dict[str, float], stop: int = stop) -> None:
                if step > stop:
                    raise KeyboardInterrupt

            (tmp_path / name).mkdir(exist_ok=True)
            with contextlib.suppress(KeyboardInterrupt):
                run.run(tmp_path / name, until)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], value) for name, value in weights[1].items())


def test_a_damaged_state_is_passed_over_and_its_step_is_taken_again(
    drill: Drill, tmp_path: Path
) -> None:
    whole, again = small(), small()
    DrillRun(whole, drill, Drilling(steps=4, save_steps=4)).run(tmp_path)
    state = tmp_path / "step-000004"
    assert [path.name for path in tmp_path.iterdir()] == [state.name]
    (state / "weights.safetensors").write_bytes(b"torn")
    DrillRun(again, drill, Drilling(steps=4, save_steps=4)).run(tmp_path)
    assert all(value.equal(again.state_dict()[n]) for n, value in whole.state_dict().items())
    check_manifest(state, required=["optimizer.safetensors", "state.json", "weights.safetensors"])


def test_the_drill_leaves_trunk_plans_and_heads_as_they_were(drill: Drill, tmp_path: Path) -> None:
    model = small()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    DrillRun(model, drill, Drilling(steps=4)).run(tmp_path)
    moved = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    assert moved and all(
        name.startswith(("lanes.", "note_writer.")) and "plan_kv" not in name for name in moved
    )


def test_self_only_is_drilled_without_a_sibling(drill: Drill) -> None:
    """What a lane scores under self-only does not change with what its siblings named; with the
    bus it does."""
    for condition in (NotesCondition.SELF_ONLY, NotesCondition.BUS):
        model = open_model(small(condition).config)
        run = DrillRun(model, drill, Drilling(steps=4))
        batch = drill.batch(random.Random(3), 2, distance=1)
        with torch.no_grad():
            before = run.roll_out(batch).scores_BKT[:, 0]
            batch.section_tokens_BKT[:, 1:] = batch.section_tokens_BKT[:, 1:].flip(0)
            after = run.roll_out(batch).scores_BKT[:, 0]
        same = torch.allclose(before, after, atol=1e-5)
        assert same is (condition is NotesCondition.SELF_ONLY)


def test_a_state_of_another_start_is_refused(drill: Drill, tmp_path: Path) -> None:
    DrillRun(small(), drill, Drilling(steps=4, save_steps=1)).run(tmp_path)
    other = small()
    with torch.no_grad():
        other.trunk.norm.weight[0] += 1
    with pytest.raises(BindingMismatch, match="start"):
        DrillRun(other, drill, Drilling(steps=4, save_steps=1)).run(tmp_path)


def test_a_state_of_another_drill_is_refused(drill: Drill, tmp_path: Path) -> None:
    model = small()
    DrillRun(model, drill, Drilling(steps=4, save_steps=1)).run(tmp_path)
    with pytest.raises(BindingMismatch, match=r"drilling\.seed +state 0 +asked for 1"):
        DrillRun(model, drill, Drilling(steps=4, save_steps=1, seed=1)).run(tmp_path)


def test_a_drill_names_two_things_of_as_many_bits_as_there_are_words_for() -> None:
    tokenizer = load_tokenizer(load_config("nano-2").records.tokenizer)
    chronicle = Chronicle(0, Split.TRAIN, turn_dials("nano"), nano_meter())
    taught = [d.taught for d in chronicle.documents(12)]
    wide = Drill(taught, tokenizer, BLOCK, read_bits("5,6,7"))
    words = wide.batch(random.Random(1), 8, distance=4).edges.tokens_BJ
    assert len(words.unique()) > 2**5
    with pytest.raises(UsageError, match="from 1 to 7"):
        read_bits("6,7,8")


def test_documents_beside_the_drill_teach_plans_too(drill: Drill, tmp_path: Path) -> None:
    """Plan-KV and heads move with them and not without; a killed drill reads on where it was."""
    chronicle = Chronicle(0, Split.TRAIN, turn_dials("nano"), nano_meter())
    lines = [document.taught.model_dump_json() for document in chronicle.documents(4)]
    (tmp_path / "documents.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    compile_corpus([tmp_path / "documents.jsonl"], tmp_path / "records", small().config)
    records = RecordShards(tmp_path / "records", split=Split.TRAIN)
    how = Drilling(steps=4, beside_documents=2, save_steps=1)
    weights = []
    for name, stops in (("whole", (4,)), ("killed", (2, 4))):
        for stop in stops:
            model = small()
            before = {n: value.clone() for n, value in model.state_dict().items()}

            def until(step: int, said: dict[str, float], stop: int = stop) -> None:
                assert said["beside"] > 0
                if step > stop:
                    raise KeyboardInterrupt

            (tmp_path / name).mkdir(exist_ok=True)
            with contextlib.suppress(KeyboardInterrupt):
                DrillRun(model, drill, how, records).run(tmp_path / name, until)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][n], value) for n, value in weights[1].items())
    moved = {n for n, value in weights[0].items() if not value.equal(before[n])}
    assert any("plan_kv" in n for n in moved) and any(n.startswith("heads.") for n in moved)
    assert not any(n.startswith(("trunk.", "planner.")) for n in moved)
    with pytest.raises(BindingMismatch):
        DrillRun(small(), drill, how).run(tmp_path / "whole")
