"""What a teacher model is shown and what its drafts become."""

import json

import pytest

from pdt.config import load_config
from pdt.records.curated import curated_names, read_curated
from pdt.teacher import prompts
from pdt.teacher.checks import Failures
from pdt.teacher.drafts import AnswerDraft, FactsDraft, reply_schema
from pdt.teacher.passage import find_passage
from pdt.teacher.place import place_answer, place_facts
from pdt.terms import TeacherPass
from tests.support.teacher_server import answer_draft, facts_draft


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("name", curated_names())
def test_a_draft_without_offsets_gives_back_a_hand_written_record_whole(name: str) -> None:
    document = read_curated(name).taught
    found = Failures(document.record_id)
    facts = place_facts(FactsDraft.model_validate(facts_draft(document)), document.article, found)
    draft = AnswerDraft.model_validate(answer_draft(document))
    answer = place_answer(draft, document.inventory, found, lanes=3)
    assert found.found == []
    assert facts == document.inventory
    assert answer is not None
    renamed = {link.id: f"d{n}" for n, link in enumerate(document.answer.dependencies, start=1)}
    expected = document.answer.model_dump_json()
    for old in sorted(renamed, key=len, reverse=True):
        expected = expected.replace(f'"{old}"', f'"{renamed[old]}"')
    got = json.loads(answer.model_dump_json())
    for mine, theirs in zip(got["dependencies"], json.loads(expected)["dependencies"], strict=True):
        mine["coined"] = theirs["coined"]  # a model cannot know what a choice was drawn from
    assert got == json.loads(expected)


def test_a_passage_is_found_whatever_its_dashes_and_stored_as_the_text_has_it() -> None:
    text = "He said\u00a0\u201cwe march\u201d \u2013 in 1812\u20131814.  Then once more: we march."
    quote = find_passage(text, '"we march" - in 1812-1814')
    assert quote is not None and quote.matches(text) and "\u2013" in quote.text
    assert find_passage(text, "we march.") is not None
    last = find_passage(text, "we march", near=[(40, len(text))])
    assert last is not None and last.start > 40
    assert find_passage(text, "We march") is None, "another word, another passage"
    assert find_passage(text, " ") is None


def test_every_field_of_a_reply_is_required_and_nothing_else_is_allowed() -> None:
    for draft in (FactsDraft, AnswerDraft):
        schema = reply_schema(draft)
        for node in (schema, *schema["$defs"].values()):
            if node["type"] == "object":
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])


def test_prompts_hold_the_contracts_own_numbers() -> None:
    text = prompts.instructions(TeacherPass.EXTRACT_FACTS, load_config("canonical"))
    assert "between 18 and 48" in text and "at least 12 different paragraphs" in text
    text = prompts.instructions(TeacherPass.COMPOSE_ANSWER, load_config("canonical"))
    assert "700 to 1000 tokens" in text and "4 to 8 `nodes`" in text and "{" not in text
    other = load_config("canonical", overrides=["records.limits.plan_nodes.max=6"])
    assert "4 to 6 `nodes`" in prompts.instructions(TeacherPass.COMPOSE_ANSWER, other)
