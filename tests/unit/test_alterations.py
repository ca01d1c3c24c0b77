"""Altered documents keep their facts, are sound, and differ in what they say they differ in."""

import re

import pytest

from pdt.chronicle.names import unseen_name
from pdt.evaluation.alterations.alteration import Alteration, event_of
from pdt.evaluation.alterations.deal import DealAnew
from pdt.evaluation.alterations.names import Rename, names_of
from pdt.evaluation.alterations.requests import AskByHand, by_hand
from pdt.evaluation.alterations.sources import (
    IRRELEVANT,
    AddIrrelevant,
    AddSecondDocument,
    ShuffleParagraphs,
)
from pdt.evaluation.generate.altered import altered_pairs
from pdt.evaluation.generate.held_out import held_out
from pdt.evaluation.protocol.conditions import GENERATED
from pdt.records.compile import Compiler
from pdt.records.schema import TrainingRecord
from pdt.teacher.document import TaughtDocument
from tests.support.evaluations import chronicle_documents, small_config

ALTERATIONS = [condition.alters for condition in GENERATED if condition.alters is not None]


@pytest.fixture(scope="module")
def taught() -> tuple[TaughtDocument, ...]:
    return chronicle_documents(4)


def sound(document: TaughtDocument) -> bool:
    """Every quote still reads as it says, where it says."""
    prose = {paragraph.id: paragraph.text for _, paragraph in document.article.paragraphs()}
    texts = [section.text for section in document.answer.sections]
    return (
        all(fact.quote.matches(prose[fact.paragraph_id]) for fact in document.inventory.facts)
        and all(
            quote.matches(texts[lane])
            for entry in document.answer.roles
            for lane, role in enumerate(entry.lanes)
            for quote in role.quotes
        )
        and all(
            end.quote.matches(texts[end.lane])
            for dependency in document.answer.dependencies
            for end in (dependency.owner, dependency.receiver)
        )
    )


@pytest.mark.parametrize("alteration", ALTERATIONS, ids=lambda a: type(a).__name__)
def test_an_altered_document_is_sound_has_its_facts_and_compiles(
    alteration: Alteration, taught: tuple[TaughtDocument, ...]
) -> None:
    compiler = Compiler.load(small_config())
    pairs = []
    for document in taught:
        record = compiler.compile(document)
        assert isinstance(record, TrainingRecord)
        pairs.append((held_out(dict(record), compiler.tokenizer), dict(record)))
    altered = altered_pairs(pairs, alteration, compiler, longest=1024)
    assert len(altered) == len(pairs)
    for (before, row), (after, other) in zip(pairs, altered, strict=True):
        again = TaughtDocument.model_validate_json(other["document"])
        assert sound(again)
        assert [fact.id for fact in after.facts] == [fact.id for fact in before.facts]
        assert after.record_id == before.record_id
        assert after.text_sha256 != before.text_sha256  # what the model reads is another text
        assert other["plan_targets_KNP"].shape == row["plan_targets_KNP"].shape
    # Prompts that the planner cannot read are left out, not cut.
    assert altered_pairs(pairs, alteration, compiler, longest=10) == []


def test_irrelevant_paragraphs_and_a_second_article_are_added_and_nothing_is_lost(
    taught: tuple[TaughtDocument, ...],
) -> None:
    first, second = taught[:2]
    more = AddIrrelevant().apply(first, second)
    assert more is not None
    assert sum(text in more.article.text for text in IRRELEVANT) == 2
    both = AddSecondDocument().apply(first, second)
    assert both is not None
    assert all(p.text in both.article.text for _, p in second.article.paragraphs())
    for altered in (more, both):
        assert all(p.text in altered.article.text for _, p in first.article.paragraphs())
        assert altered.answer == first.answer
    assert AddSecondDocument().apply(first, first) is None


def test_shuffled_paragraphs_keep_their_headings(taught: tuple[TaughtDocument, ...]) -> None:
    moved = 0
    for document in taught:
        shuffled = ShuffleParagraphs().apply(document, document)
        assert shuffled is not None
        heading = {p.id: s.path for s, p in document.article.paragraphs()}
        assert {p.id: s.path for s, p in shuffled.article.paragraphs()} == heading
        order = [p.id for _, p in shuffled.article.paragraphs()]
        moved += order != [p.id for _, p in document.article.paragraphs()]
    assert moved


def test_a_renamed_document_has_names_that_no_training_text_has(
    taught: tuple[TaughtDocument, ...],
) -> None:
    for document in taught:
        renamed = Rename().apply(document, document)
        assert renamed is not None
        said = renamed.article.text + renamed.answer.request
        old, new = (names_of(d) for d in (document, renamed))
        assert not any(re.search(rf"\b{name}\b", said) for names in old for name in names)
        assert [len(names) for names in new] == [len(names) for names in old]
        assert min(map(len, new)) > 0
        assert all(unseen_name(name) for names in new for name in names)


def test_requests_by_hand_tell_their_division_and_keep_what_is_to_be_named(
    taught: tuple[TaughtDocument, ...],
) -> None:
    forms = by_hand()
    assert set(forms) == {"phase", "theme", "party", "dealt"}
    assert all(len(set(wordings)) >= 10 for wordings in forms.values())
    assert all(w.count("{event}") == 1 for wordings in forms.values() for w in wordings)
    for document in taught:
        asked = AskByHand().apply(document, document)
        event = event_of(document)
        assert asked is not None and event is not None
        assert event in document.answer.request and event in asked.answer.request
        names = re.findall(r"With the [^.]* is named[^.]*\.", document.answer.request)
        assert all(sentence in asked.answer.request for sentence in names)
        assert asked.answer.request != document.answer.request


def test_facts_dealt_anew_have_one_owner_each_and_no_label_says_the_division(
    taught: tuple[TaughtDocument, ...],
) -> None:
    moved = 0
    for document in taught:
        dealt = DealAnew().apply(document, document)
        assert dealt is not None
        nodes = [node for plan in dealt.answer.plans for node in plan.nodes]
        owned = [fact for node in nodes for fact in node.owned_facts]
        assert sorted(owned) == sorted(fact.id for fact in document.inventory.facts)
        assert all(node.owned_facts for node in nodes)
        assert not dealt.answer.dependencies
        assert not re.search(r"\b(Open|Close|name)\b", " ".join(n.objective for n in nodes))
        assert dealt.teacher.settings["division"] == "dealt"
        before = [{f for n in plan.nodes for f in n.owned_facts} for plan in document.answer.plans]
        after = [{f for n in plan.nodes for f in n.owned_facts} for plan in dealt.answer.plans]
        moved += before != after
    assert moved == len(taught)
