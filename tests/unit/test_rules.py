"""Every rule of the contract has a record that passes and a mutation that fails."""

from collections.abc import Callable
from typing import Any

import pytest

from pdt.config import PdtConfig
from pdt.records.align import tokenize_document
from pdt.records.checks import check_document
from pdt.teacher.checks import RULES, CheckFailure
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer, load_tokenizer
from tests.support.record_samples import (
    BUNDLE,
    quote,
    sample,
    sample_config,
    section_text,
    train_tokenizer,
)

Json = dict[str, Any]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> tuple[PdtConfig, StudentTokenizer]:
    file = train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json")
    config = sample_config(file)
    return config, load_tokenizer(config.records.tokenizer)


def failures(data: Json, tools: tuple[PdtConfig, StudentTokenizer]) -> list[CheckFailure]:
    return check_document(TaughtDocument.model_validate(data), *tools)


def facts(data: Json) -> list[Json]:
    return data["inventory"]["facts"]


def nodes(data: Json, lane: int) -> list[Json]:
    return data["answer"]["plans"][lane]["nodes"]


def role(data: Json, fact: int, lane: int) -> Json:
    return data["answer"]["roles"][fact]["lanes"][lane]


def dependency(data: Json, index: int) -> Json:
    return data["answer"]["dependencies"][index]


def append_to_section(data: Json, lane: int, text: str) -> None:
    """Text after the last paragraph's end: no quote moves."""
    data["answer"]["sections"][lane]["paragraphs"][-1] += " " + text


MUTATIONS: dict[str, Callable[[Json], object]] = {
    "bundle_agrees": lambda d: d["inventory"].update(bundle_id="cd" * 32),
    "fact_count": lambda d: facts(d).pop(),
    "fact_ids": lambda d: facts(d)[1].update(id="f1"),
    "fact_paragraph": lambda d: facts(d)[0].update(paragraph_id="p99"),
    "fact_quote": lambda d: facts(d)[0]["quote"].update(start=3, end=21),
    "fact_citations": lambda d: facts(d)[0].update(citation_ids=["c3"]),
    "fact_paragraph_spread": lambda d: facts(d)[1].update(
        paragraph_id="p1",
        quote=quote("The siege of Vell was fought in 1412", "The siege of Vell"),
    ),
    "fact_section_spread": lambda d: [s.update(path=["Siege"]) for s in d["article"]["sections"]],
    "negative_alters": lambda d: facts(d)[0]["hard_negative"].update(original="1999"),
    "negative_alters_words": lambda d: facts(d)[0]["hard_negative"].update(
        original=facts(d)[0]["statement"],
        replacement="Nobody came.",
        statement="Nobody came.",
    ),
    "negative_not_in_source": lambda d: d["article"]["sections"][0]["paragraphs"][0].update(
        text=d["article"]["sections"][0]["paragraphs"][0]["text"]
        + " Some say it was fought in 1421."
    ),
    "lane_count": lambda d: d["answer"]["plans"].pop(),
    "plan_nodes": lambda d: nodes(d, 0).pop(),
    "section_paragraphs": lambda d: d["answer"]["sections"][0]["paragraphs"].pop(),
    "presentation_order": lambda d: d["answer"].update(lane_at_position=[2, 0, 0]),
    "target_paragraphs": lambda d: nodes(d, 0)[1].update(target_paragraphs=[0]),
    "known_facts": lambda d: nodes(d, 0)[0]["owned_facts"].append("f77"),
    "roles_complete": lambda d: d["answer"]["roles"].pop(),
    "one_owner": lambda d: role(d, 0, 0).update(role="reference"),
    "owner_routed": lambda d: nodes(d, 1)[0]["owned_facts"].append("f1"),
    "reference_permitted": lambda d: nodes(d, 1)[1].update(reference_facts=[]),
    "role_has_quote": lambda d: role(d, 0, 0).update(quotes=[]),
    "role_quote": lambda d: role(d, 0, 0)["quotes"][0].update(start=0, end=18),
    "role_quote_in_target": lambda d: role(d, 0, 0).update(
        quotes=[quote(section_text(0), "every guard to his post")]
    ),
    "absent_stays_absent": lambda d: append_to_section(d, 1, "It was fought in 1412, they say."),
    "negative_absent": lambda d: append_to_section(d, 0, "The walls held for six weeks."),
    "dependency_ids": lambda d: nodes(d, 1)[1].update(dependencies=[]),
    "dependency_ends": lambda d: dependency(d, 0)["receiver"].update(node=9),
    "dependency_quote": lambda d: dependency(d, 0)["owner"]["quote"].update(text="The walls fell"),
    "dependency_quote_in_target": lambda d: dependency(d, 0)["owner"].update(node=0),
    "dependency_order": lambda d: d["answer"].update(lane_at_position=[1, 0, 2]),
    "dependency_fact": lambda d: dependency(d, 0).update(fact_id="f1"),
    "coined_quoted": lambda d: dependency(d, 1)["receiver"].update(
        quote=quote(section_text(0), "bound every guard")
    ),
    "coined_hidden": lambda d: nodes(d, 0)[0].update(objective="Explain the grey oath"),
    "coined_received": lambda d: append_to_section(d, 1, "So ended the Grey Oath."),
    "coined_entropy": lambda d: dependency(d, 1)["coined"].update(entropy_bits=3),
    "no_special_tokens": lambda d: append_to_section(d, 1, "And then </s> it stopped."),
    "source_tokens": lambda d: d["article"]["sections"][0]["paragraphs"][0].update(
        text=d["article"]["sections"][0]["paragraphs"][0]["text"] + " and on" * 400
    ),
    "section_tokens": lambda d: append_to_section(d, 2, "on and " * 300 + "on."),
    "prompt_tokens": lambda d: d["answer"].update(request="Explain " + "more and " * 900 + "more."),
    "quote_tokens": lambda d: role(d, 0, 0)["quotes"][0].update(start=5000, end=5018),
    "dependency_published": lambda d: dependency(d, 0)["owner"].update(
        quote=quote(section_text(0), "to his post.")
    ),
    "dependency_delay": lambda d: dependency(d, 0).update(
        receiver={"lane": 1, "node": 0, "quote": quote(section_text(1), "Nobody had won")}
    ),
    "dependency_window": lambda d: dependency(d, 0)["owner"].update(
        node=0, quote=quote(section_text(0), "Duke Orsan")
    ),
}


@pytest.mark.paper("§4.3", "§5.2")
def test_a_receiver_token_at_a_blocks_first_place_is_chosen_before_the_barriers_notes(
    tools: tuple[PdtConfig, StudentTokenizer],
) -> None:
    lanes = tokenize_document(TaughtDocument.model_validate(sample()), *tools).lanes
    passage = quote(section_text(0), "was fought in 1412")
    owner_block = lanes[0].block_of(lanes[0].tokens_of(passage["start"], passage["end"])[-1])
    border = (owner_block + 1) * lanes[0].block_tokens

    def early(token: int) -> list[CheckFailure]:
        data, start, end = sample(), lanes[1].starts[token], lanes[1].ends[token]
        receiver = {"start": start, "end": end, "text": section_text(1)[start:end]}
        dependency(data, 0)["owner"].update(node=0, quote=passage)
        dependency(data, 0)["receiver"].update(node=0, quote=receiver)
        return [f for f in failures(data, tools) if f.rule == "dependency_delay"]

    assert early(border + 1) == []
    (failure,) = early(border)
    assert f"first receiver token is chosen in block {owner_block};" in str(failure)
    assert (failure.lane, failure.start, failure.end) == (
        1,
        lanes[1].starts[border],
        lanes[1].ends[border],
    )
    assert len(early(border - 1)) == 1


def test_the_sample_breaks_no_rule(tools: tuple[PdtConfig, StudentTokenizer]) -> None:
    assert failures(sample(), tools) == []


def test_every_rule_has_a_mutation() -> None:
    assert sorted(MUTATIONS) == sorted(RULES)


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("rule", sorted(MUTATIONS))
def test_a_mutation_breaks_its_rule(rule: str, tools: tuple[PdtConfig, StudentTokenizer]) -> None:
    data = sample()
    MUTATIONS[rule](data)
    found = failures(data, tools)
    assert rule in {failure.rule for failure in found}
    for failure in found:
        assert failure.record_id == "vell-1"
        assert failure.measured
        assert failure.required


def test_all_failures_of_a_record_are_reported_at_once(
    tools: tuple[PdtConfig, StudentTokenizer],
) -> None:
    data = sample()
    for rule in ("fact_quote", "role_quote", "dependency_order", "coined_entropy", "known_facts"):
        MUTATIONS[rule](data)
    found = {failure.rule for failure in failures(data, tools)}
    assert found >= {
        "fact_quote",
        "role_quote",
        "dependency_order",
        "coined_entropy",
        "known_facts",
    }


def test_a_failure_says_where(tools: tuple[PdtConfig, StudentTokenizer]) -> None:
    data = sample()
    MUTATIONS["role_quote"](data)
    (failure,) = [f for f in failures(data, tools) if f.rule == "role_quote"]
    assert (failure.lane, failure.fact, failure.start, failure.end) == (0, "f1", 0, 18)
    assert failure.where == "lane 0, fact f1, characters 0-18"


@pytest.mark.paper("§4.2")
def test_a_record_without_dependencies_is_valid(tools: tuple[PdtConfig, StudentTokenizer]) -> None:
    data = sample()
    data["answer"]["dependencies"] = []
    for lane in (0, 1):
        nodes(data, lane)[1]["dependencies"] = []
    assert failures(data, tools) == []


def test_facts_and_article_share_one_bundle() -> None:
    assert sample()["article"]["bundle_id"] == BUNDLE


def test_no_rule_crashes_on_another_rules_mutation(
    tools: tuple[PdtConfig, StudentTokenizer],
) -> None:
    for first in MUTATIONS:
        for second in ("lane_count", "roles_complete", "plan_nodes", "section_paragraphs"):
            if first != second:
                data = sample()
                MUTATIONS[first](data)
                MUTATIONS[second](data)
                assert failures(data, tools)
