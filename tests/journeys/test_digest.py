"""The trained lanes on SmolLM2 that come with the package, on a text that nobody was trained on."""

from collections import Counter
from pathlib import Path

import pytest

import pdt
from pdt.sentences.support import paragraphs_of, source_sentences
from pdt.sentences.words import without_parentheses
from tests.support.weights import SMOLLM2

TEXT = Path(__file__).parents[1] / "data/texts/lecture.md"


@pytest.mark.weights(SMOLLM2)
def test_three_lanes_tell_an_article_in_sentences_of_its_own() -> None:
    writer = pdt.Writer.load("digest", trunk=str(SMOLLM2))
    source = TEXT.read_text(encoding="utf-8")
    done = writer.generate(
        source, "Brief me on this lecture.", quote=True, max_tokens=240, drafts=8
    )
    allowed = {without_parentheses(one.text) for one in source_sentences(source)}
    written = [paragraphs_of(section.text) for section in done.documents[0].sections]
    said = Counter(without_parentheses(text) for lane in written for text in lane)
    assert all(written), "a lane wrote nothing"
    assert set(said) <= allowed
    assert len(said) >= 4, "lanes that read no plan tell the same first sentence three times"
