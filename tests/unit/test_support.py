"""What the source bears out, and what the exact screen for real prose sees."""

import pytest

from pdt.evaluation.lines.document import HeldOutDocument, HeldOutFact
from pdt.evaluation.screens.prose import ProseScreen
from pdt.sentences.support import borne_out, source_sentences, support_of
from pdt.terms import Split

SOURCE = """# Notes

## Mona Reed

Mona Reed (born 4 May 1966) is an English actor from York. She moved to Leeds in 1990.

## Alder Hill

Alder Hill is a village near Wexley. It had 403 residents in 1990.
"""


@pytest.mark.parametrize(
    ("written", "stands_on"),
    [
        ("Mona Reed moved to Leeds in 1990.", 1),
        ("She moved to Leeds in 1990.", 1),
        ("Besides, Alder Hill had 403 residents in 1990, according to the dossier.", 3),
        ("Mona Reed, one of our topics here, is an English actor.", 0),
        ("Mona Reed was born on 4 May 1966.", 0),
        ("Mona Reed moved to Leeds in 1991.", None),
        ("Mona Reed moved to Paris in 1990.", None),
        ("Bruno Reed moved to Leeds in 1990.", None),
        ("The weather was fine.", None),
    ],
)
def test_a_sentence_stands_on_the_source_sentence_that_has_its_words_and_values(
    written: str, stands_on: int | None
) -> None:
    source = source_sentences(SOURCE)
    assert borne_out(written, source)[0].source == stands_on


def test_support_counts_sentences_of_all_sections_and_what_is_said_twice() -> None:
    sections = [
        "Mona Reed moved to Leeds in 1990. Alder Hill is a village near Wexley.",
        "Alder Hill is a village near Wexley, according to the file. Nobody lives in Oslo.",
    ]
    found = support_of(sections, SOURCE)
    assert (found.sentences, found.borne_out, found.repeated) == (4, 3, 1)


def fact(number: int, statement: str, negative: str, lane: int) -> HeldOutFact:
    return HeldOutFact(
        id=f"f{number}", statement=statement, hard_negative=negative, owner_lane=lane,
        owner_node=0, reference_lanes=(), permitted_lanes=(),
    )  # fmt: skip


DOCUMENT = HeldOutDocument(
    record_id="r", split=Split.TEST, family_key="f", category="dossier", teacher="extractive",
    text_sha256="0" * 64, section_lengths=(1, 1), dependency_tokens=((), ()), dependency_owner=None,
    attacked_tokens=((), ()), choices=(),
    facts=(
        fact(1, "Mona Reed is an actor from York.", "Mona Reed is an actor from Hull.", 0),
        fact(2, "Mona Reed went to Leeds in May 1990.", "Mona Reed went to Leeds in June 1990.", 0),
        fact(3, "Alder Hill had 403 people in 1990.", "Alder Hill had 408 people in 1990.", 1),
    ),
)  # fmt: skip


@pytest.mark.paper("§7.2")
def test_a_sentence_counts_when_its_content_words_and_values_are_those_of_the_fact() -> None:
    judged = ProseScreen().judge(
        DOCUMENT,
        [
            "Mona Reed is an actor from York. She went to Leeds in May 1990.",
            "Alder Hill, one of the 3 notes, had 403 people in 1990.",
        ],
    )
    assert judged.stated_KF == judged.mentioned_KF == ((1, 1, 0), (0, 0, 1))
    assert not any(map(any, judged.hard_negative_KF))


@pytest.mark.paper("§7.2")
def test_a_changed_value_is_no_statement_but_a_falsehood_and_a_mention() -> None:
    judged = ProseScreen().judge(
        DOCUMENT,
        ["Mona Reed went to Leeds in June 1990.", "Alder Hill had 409 people in 1990. York."],
    )
    assert judged.stated_KF == ((0, 0, 0), (0, 0, 0))
    assert judged.hard_negative_KF == ((0, 1, 0), (0, 0, 0))
    assert judged.altered_KF == ((0, 1, 0), (0, 0, 1))
    assert judged.mentioned_KF == ((0, 1, 0), (0, 0, 1))
