"""The Python interface: what is exported, what it takes, and what it says of a useless text."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import pdt
from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import Meter
from pdt.errors import UsageError
from pdt.generation.card import card_of, remark
from pdt.generation.events import Done, FinishReason, Section
from pdt.generation.interventions import INTERVENTION_FORMS
from pdt.generation.trouble import trouble_of
from pdt.terms import Split
from tests.conftest import open_model
from tests.support.generations import byte_tokenizer, text_model

SOURCE, REQUEST = "The siege lasted for the winter.", "Tell it."


@pytest.fixture(scope="module")
def writer() -> pdt.Writer:
    return pdt.Writer(text_model(), byte_tokenizer())


def texts(done: object) -> list[tuple[int, ...]]:
    assert isinstance(done, Done)
    return [section.tokens for section in done.documents[0].sections]


def test_everything_exported_says_what_it_is() -> None:
    for name in pdt.__all__:
        assert (inspect.getdoc(getattr(pdt, name)) or "").strip(), name
    for name, value in vars(pdt.Writer).items():
        if not name.startswith("_"):
            assert inspect.getdoc(value), name


def test_what_is_exported_is_listed_where_a_shell_completes_names() -> None:
    assert set(pdt.__all__) <= set(dir(pdt))


def test_every_edit_that_the_command_takes_is_a_value_at_the_top() -> None:
    examples = {
        "swap-plans:0,1", "zero-plan", "replace-node:0.1=1.0", "drop-node:0.1", "remove-notes",
        "remove-note:0@1", "mutate-code:0@1", "exchange-notes", "exchange-producers:0,1",
        "scramble-notes", "close-gate", "block-reader:0",
    }  # fmt: skip
    names = {form.split()[0].partition(":")[0].partition("[")[0] for form in INTERVENTION_FORMS}
    assert {one.partition(":")[0] for one in examples} == names
    for one in examples:
        kind = type(pdt.parse_intervention(one))
        assert getattr(pdt, kind.__name__, None) is kind and kind.__name__ in pdt.__all__


@pytest.mark.parametrize("load", [pdt.load_model, pdt.Writer.load])
def test_a_model_is_named_by_a_text_or_a_path(load: Callable[[object], object]) -> None:
    for wrong in (5, None, ["nano"]):
        with pytest.raises(UsageError, match="expected a directory or a model of the package"):
            load(wrong)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: pdt.from_trunk(5), "The trunk is int, expected a directory"),  # type: ignore
        (lambda: pdt.from_trunk("x", config="nano"), "The configuration is str"),  # type: ignore
        (lambda: pdt.random_model("tiny"), "expected what pdt.load_config gives"),  # type: ignore
        (lambda: pdt.load_config(5), "The preset is int"),  # type: ignore
        (lambda: pdt.load_config(file=5), "file is int, expected a path"),  # type: ignore
        (lambda: pdt.load_config(overrides="lanes.count=2"), "expected a list such as"),
        (lambda: pdt.load_config(overrides=[5]), "expected a text such as"),  # type: ignore
        (lambda: pdt.save_model(5, "x"), "The model is int"),  # type: ignore
        (lambda: pdt.save_model(open_model(), 5), "expected a path"),  # type: ignore
        (lambda: pdt.Writer("nano"), "The model is str"),  # type: ignore
        (lambda: pdt.parse_intervention(5), "expected a text such as swap-plans"),  # type: ignore
        (lambda: pdt.GenerationSettings(max_tokens="many"), "max_tokens: .*integer"),  # type: ignore
        (lambda: pdt.GenerationSettings(max_token=5), "Known settings: max_tokens"),  # type: ignore
    ],
)
def test_an_argument_of_another_type_is_refused_where_it_is_given(
    call: Callable[[], object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        call()


def test_a_model_is_saved_where_a_text_says(tmp_path: Path) -> None:
    pdt.save_model(open_model(), str(tmp_path / "model"))
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_settings_and_interventions_are_taken_as_values_names_and_texts(
    writer: pdt.Writer,
) -> None:
    settings = pdt.GenerationSettings(max_tokens=9)
    swapped = [
        writer.generate(SOURCE, REQUEST, settings, interventions=[pdt.SwapPlans(0, 1)]),
        writer.generate(SOURCE, REQUEST, max_tokens=9, interventions=["swap-plans:0,1"]),
        writer.generate(SOURCE, REQUEST, max_tokens=9, interventions="swap-plans:0,1"),
        writer.generate(
            SOURCE, REQUEST, pdt.GenerationSettings(), max_tokens=9, interventions="swap-plans:0,1"
        ),
    ]
    assert len({str(texts(done)) for done in swapped}) == 1
    assert texts(writer.generate(SOURCE, REQUEST, settings)) != texts(swapped[0])


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_token": 5}, "Known settings: max_tokens"),
        ({"settings": {"max_tokens": 5}}, r"pdt\.GenerationSettings\(max_tokens=64\)"),
        ({"interventions": [5]}, 'a text such as "swap-plans:0,1"'),
        ({"interventions": "swap-plans"}, "not of the form"),
        ({"interventions": [pdt.SwapPlans("a", 1)]}, "expected its number"),  # type: ignore
        ({"interventions": ["swap-plans:0,9"], "max_tokens": 3}, "Lane 9 does not exist"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_give(
    writer: pdt.Writer, named: dict[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        writer.generate(SOURCE, REQUEST, **named)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="pair of texts"):
        writer.begin([SOURCE])  # type: ignore[list-item]


def test_white_space_at_the_ends_of_a_source_changes_nothing(writer: pdt.Writer) -> None:
    assert writer.prompt(SOURCE + "\n", REQUEST + " ") == writer.prompt(SOURCE, REQUEST)


@pytest.mark.parametrize(
    ("text", "tokens", "trouble"),
    [
        ("a b c " * 10, (1, 2, 3) * 10, "repeats itself"),
        ("word " * 24, (5,) * 24, "repeats itself"),
        ("x" * 60, (*range(20), *(1, 2, 3) * 6, *range(30, 50)), "repeats itself"),
        ("\n" * 30, tuple(range(30)), "is blank"),
        ("a\n" * 5 + "\n" * 25, tuple(range(30)), "is mostly blank"),
        ("a b c " * 7, (1, 2, 3) * 7, None),
        (" ".join(f"w{n}" for n in range(60)), tuple(range(60)), None),
        ("x" * 99, (*range(30), *range(7), *range(5, 30), *range(8), *range(30)), "repeats itself"),
    ],
)
def test_a_lane_that_repeats_itself_or_is_blank_is_seen(
    text: str, tokens: tuple[int, ...], trouble: str | None
) -> None:
    assert trouble_of(Section(0, text, tokens, FinishReason.LENGTH)) == trouble


def test_the_ledger_says_what_is_wrong_with_each_lane(writer: pdt.Writer) -> None:
    done = writer.generate(SOURCE, REQUEST, max_tokens=3)
    assert done.ledger.troubles == [[None, None, None]]


def test_a_model_knows_whether_its_lanes_are_trained_and_on_what() -> None:
    nano = pdt.load_model("nano")
    tokenizer = nano.tokenizer
    assert tokenizer is not None
    known = Chronicle(23, Split.TEST, turn_dials("nano", ()), Meter(tokenizer)).document(0).taught
    assert remark(nano, tokenizer, known.article.text) is None
    assert "expect noise" in (remark(nano, tokenizer, SOURCE) or "")
    assert "expect noise" in (remark(nano, tokenizer, "Kyoto is a city in Japan. " * 20) or "")
    assert card_of(open_model()).lanes_trained


@pytest.mark.parametrize(
    "overrides", [(), ("lanes.shared=true",), ("lanes.bank=low_rank", "lanes.rank=4")]
)
def test_lanes_that_nobody_trained_are_said_whatever_bank_they_have(
    overrides: tuple[str, ...],
) -> None:
    model = pdt.random_model(pdt.load_config("tiny", overrides=overrides))
    assert not card_of(model).lanes_trained
    assert "untrained copies" in (remark(model, byte_tokenizer(), SOURCE) or "")
    with torch.no_grad():  # equal lanes that read their plans were trained on one stack
        model.lane_layers[0].plan_kv.o_proj.weight[0, 0] = 1.0
    assert card_of(model).lanes_trained
