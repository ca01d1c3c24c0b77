"""Alignment with the canonical student's real tokenizer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdt.config import load_config
from pdt.records.align import tokenize_section
from pdt.sources.quote import quote_at
from pdt.teacher.answer import TargetSection
from pdt.tokenizer import StudentTokenizer, load_tokenizer
from tests.support.weights import needs_qwen

pytestmark = needs_qwen


@pytest.fixture(scope="module")
def qwen() -> StudentTokenizer:
    return load_tokenizer(load_config("canonical").records.tokenizer)


def test_it_is_the_official_tokenizer(qwen: StudentTokenizer) -> None:
    assert qwen.encode("Hello, world!").ids == [9707, 11, 1879, 0]
    assert qwen.eos_id == 151645
    assert "<|im_start|>" in qwen.special_tokens


@given(
    st.lists(
        st.sampled_from(["ab", "é", "ß", "漢字👩🧂", "ع", "ไทย", ".,'1412", ""]),
        min_size=1,
        max_size=30,
    ),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_quotes_align_with_multi_byte_text(
    qwen: StudentTokenizer, words: list[str], data: st.DataObject
) -> None:
    section = TargetSection(paragraphs=(" ".join(words).strip() or "x", "The end."))
    tokens = tokenize_section(section, qwen, block_tokens=32)
    start = data.draw(st.integers(0, len(section.text) - 1))
    end = data.draw(st.integers(start + 1, len(section.text)))
    found = tokens.tokens_of_quote(quote_at(section.text, start, end))
    assert section.text[start:end] in qwen.decode([tokens.ids[i] for i in found])


def test_text_that_is_not_composed_still_aligns(qwen: StudentTokenizer) -> None:
    """Qwen composes accents before it splits; offsets still count what was written."""
    section = TargetSection(paragraphs=("Cafe\u0301 owners paid.",))
    tokens = tokenize_section(section, qwen, block_tokens=32)
    found = tokens.tokens_of_quote(quote_at(section.text, 6, 12))
    assert qwen.decode([tokens.ids[i] for i in found]).strip() == "owners"
