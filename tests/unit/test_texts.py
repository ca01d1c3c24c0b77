"""The texts of other kinds that a model is tried on."""

import pytest
from tools.try_texts import listed, source_of

from pdt.sentences.support import source_sentences, support_of


@pytest.mark.parametrize("entry", listed(), ids=lambda entry: entry["file"])
def test_a_text_is_prose_of_a_size_that_the_digest_models_learn(entry: dict[str, str]) -> None:
    source = source_of(entry)
    assert 150 < len(source.split()) < 700
    assert len(source_sentences(source)) >= 8
    assert entry["request"] and entry["kind"]
    whole = support_of([sentence.text for sentence in source_sentences(source)], source)
    assert whole.borne_out == whole.sentences and not whole.repeated


def test_there_are_ten_texts_of_ten_kinds() -> None:
    assert len({entry["kind"] for entry in listed()}) >= 10
