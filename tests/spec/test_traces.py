"""A generation can be shown, replayed exactly, and continued another way."""

import base64
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pdt.errors import BindingMismatch, CorruptFile, PdtError, UsageError
from pdt.generation.loop import Generation, start
from pdt.generation.picture import draw_picture
from pdt.generation.replay import continue_from, differences, replay
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import load_trace, save_trace, trace_of
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import sha256_json
from pdt.tokenizer import StudentTokenizer
from tests.conftest import open_model
from tests.support.generations import (
    BLOCK,
    SAMPLED,
    SETTINGS,
    byte_tokenizer,
    edits,
    run,
    some_prompts,
    text_model,
)

SVG = "{http://www.w3.org/2000/svg}"
ZEROS = base64.b64encode(bytes(2 * 3 * 4)).decode()


def traced(
    tmp_path: Path, *interventions: str, settings: GenerationSettings = SAMPLED
) -> tuple[ParallelDecoder, StudentTokenizer, Generation]:
    model, tokenizer = text_model(), byte_tokenizer()
    generation = start(
        model,
        some_prompts((9, 5)),
        settings,
        tokenizer=tokenizer,
        interventions=edits(*interventions),
    )
    run(generation)
    save_trace(trace_of(generation), tmp_path / "trace.json")
    return model, tokenizer, generation


@pytest.mark.paper("§7.3")
@pytest.mark.parametrize(
    "interventions", [(), ("swap-plans:0,1", "mutate-code:2=1,5@1", "close-gate@3")]
)
def test_a_replay_is_the_original_token_for_token(
    tmp_path: Path, interventions: tuple[str, ...]
) -> None:
    model, tokenizer, _ = traced(tmp_path, *interventions)
    trace = load_trace(tmp_path / "trace.json")
    again = replay(model, trace, tokenizer)
    run(again)
    assert differences(trace, again) == []
    assert trace_of(again) == trace


@pytest.mark.parametrize("settings", [SETTINGS, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("block", [0, 1, 3, 4])
def test_continuing_without_a_change_is_the_original(
    tmp_path: Path, block: int, settings: GenerationSettings
) -> None:
    model, tokenizer, original = traced(tmp_path, settings=settings)
    again = continue_from(model, load_trace(tmp_path / "trace.json"), block, [], tokenizer)
    run(again)
    assert trace_of(again).lanes == trace_of(original).lanes


def test_continuing_with_an_intervention_keeps_the_past_and_changes_the_rest(
    tmp_path: Path,
) -> None:
    model, tokenizer, original = traced(tmp_path)
    trace = load_trace(tmp_path / "trace.json")
    other = continue_from(model, trace, 2, edits("remove-notes"), tokenizer)
    run(other)
    fresh = start(
        model,
        some_prompts((9, 5)),
        SAMPLED,
        tokenizer=tokenizer,
        interventions=edits("remove-notes@2"),
    )
    run(fresh)
    changed = False
    for row, old, new in zip(other.writers, original.writers, fresh.writers, strict=True):
        for lane, before, straight in zip(row, old, new, strict=True):
            assert lane.tokens[: 2 * BLOCK + 1] == before.tokens[: 2 * BLOCK + 1]
            assert lane.tokens == straight.tokens
            changed |= lane.tokens != before.tokens
    assert changed


def test_a_trace_of_another_model_is_refused(tmp_path: Path) -> None:
    traced(tmp_path)
    trace = load_trace(tmp_path / "trace.json")
    with pytest.raises(BindingMismatch, match="of another model"):
        replay(text_model(seed=2), trace, None)
    with pytest.raises(BindingMismatch, match="of another model"):
        replay(open_model(), trace, None)


def test_a_trace_changed_by_hand_is_refused(tmp_path: Path) -> None:
    traced(tmp_path)
    path = tmp_path / "trace.json"
    body = json.loads(path.read_text())
    body["trace"]["lanes"][0][0]["tokens"][3] += 1
    path.write_text(json.dumps(body))
    with pytest.raises(CorruptFile, match="changed after it was saved"):
        load_trace(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"trace": {}, "digest": "x"}'])
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CorruptFile):
        load_trace(tmp_path / "x.json")
    with pytest.raises(UsageError, match="does not exist"):
        load_trace(tmp_path / "none.json")


def test_a_block_that_the_trace_does_not_have_cannot_be_continued_from(tmp_path: Path) -> None:
    model, tokenizer, _ = traced(tmp_path)
    with pytest.raises(UsageError, match="are 0 to 4"):
        continue_from(model, load_trace(tmp_path / "trace.json"), 9, [], tokenizer)


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    _, _, generation = traced(tmp_path)
    trace = load_trace(tmp_path / "trace.json")
    generation.writers[1][2].tokens[7] ^= 1
    found = differences(trace, generation)
    assert found == ["document 1, lane 2: differs at token 7"]


def test_a_picture_of_a_trace_shows_every_word_in_its_block_and_needs_nothing_beside_itself(
    tmp_path: Path,
) -> None:
    _, tokenizer, _ = traced(tmp_path)
    trace = load_trace(tmp_path / "trace.json")
    for document, lanes in enumerate(trace.lanes):
        root = ElementTree.fromstring(draw_picture(trace, document, tokenizer))
        codes = [
            f"{code:02x}"
            for codes, published in zip(trace.codes, trace.published, strict=True)
            for lane, note in enumerate(codes[document])
            for code in note
            if published[document][lane]
        ]
        notes = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "code"]
        assert sorted(map(str, notes)) == sorted(codes) and codes
        words = "".join(str(w.text) for w in root.iter(f"{SVG}tspan") if w.get("class") == "word")
        told = "".join(wrote.text for wrote in lanes)
        assert Counter(filter(str.isalnum, words)) == Counter(filter(str.isalnum, told))
        assert "href" not in {name for element in root.iter() for name in element.attrib}
    with pytest.raises(UsageError, match="holds documents 0 to 1, not 2"):
        draw_picture(trace, 2, tokenizer)


def signed_again(path: Path, change: Callable[[Any], object]) -> None:
    """Change the body of a trace and sign what comes out."""
    body = json.loads(path.read_text())["trace"]
    change(body)
    path.write_text(json.dumps({"digest": sha256_json(body), "trace": body}))


def flip(body: Any, *path: Any) -> None:
    node = body
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = not node[path[-1]] if isinstance(node[path[-1]], bool) else 5


@pytest.mark.paper("§7.3")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: flip(body, "codes", 1, 0, 2, 1), "block 1: other codes were published"),
        (lambda body: flip(body, "published", 2, 1, 0), "block 2: other lanes published"),
        (lambda body: body["codes"].pop() and body["published"].pop(), "has 3 barriers"),
        (lambda body: body["lanes"][0][1].update(reason="stop"), "lane 1: differs at its end"),
        (lambda body: body["plan_scores"].update(data=ZEROS), "plans: other presentation scores"),
    ],
)
def test_a_replay_compares_everything_that_a_trace_holds(
    tmp_path: Path, change: Any, said: str
) -> None:
    model, tokenizer, _ = traced(tmp_path)
    signed_again(tmp_path / "trace.json", change)
    trace = load_trace(tmp_path / "trace.json")
    again = replay(model, trace, tokenizer)
    run(again)
    assert said in "\n".join(differences(trace, again))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["plan_nodes"].update(shape=[2, 3]),
        lambda body: body["plan_nodes"].update(dtype="object"),
        lambda body: body["plan_valid"].update(data="!"),
        lambda body: body["lanes"].pop(),
        lambda body: body["codes"].pop(),
        lambda body: body["lanes"][0][0].update(reason="tired"),
        lambda body: body["lanes"][0][0]["tokens"].append(10**6),
        lambda body: body.update(block_tokens=9),
        lambda body: body.update(interventions=[{"kind": "SwapPlans", "a": "x"}]),
        lambda body: body.update(interventions=[{"kind": "SwapPlans", "third": 1}]),
        lambda body: body.update(interventions=[{"kind": "MutateCode", "block": -1}]),
        lambda body: body.update(interventions=[{"kind": "Path"}]),
    ],
    ids=range(12),
)
def test_a_signed_trace_of_wrong_shapes_types_or_fields_is_refused(
    tmp_path: Path, change: Any
) -> None:
    model, tokenizer, _ = traced(tmp_path)
    signed_again(tmp_path / "trace.json", change)
    with pytest.raises(PdtError):
        replay(model, load_trace(tmp_path / "trace.json"), tokenizer)
