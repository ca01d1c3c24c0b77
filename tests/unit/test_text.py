"""Text as it comes: whole characters, stop strings, and the trunk's own tokenizers."""

from pathlib import Path

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

import pdt
from pdt.config import load_config
from pdt.errors import TrunkRefused, UsageError
from pdt.generation.text import TextStream
from pdt.model.tokenizer import tokenizer_from_gguf
from pdt.model.weights import open_weights
from tests.support.generations import byte_tokenizer, text_model

TEXTS = [
    "The siege of Køge, 1659 — “a hard winter”.",
    "naïve café 東京 Ελλάδα 🏰🔥 e\u0301",
    "1234 5678\n\n\tindented   spaces",
    "it's o'clock; they'll've",
]


@given(st.text(max_size=60), st.lists(st.sampled_from(["the", "\n\n", "é", "🏰"]), max_size=2))
def test_pieces_are_whole_characters_and_join_to_the_text_before_a_stop(
    text: str, stops: list[str]
) -> None:
    tokenizer = byte_tokenizer()
    stream = TextStream(tokenizer, stops)
    pieces = []
    for token in tokenizer.encode(text).ids:
        pieces.append(stream.push(token))
        if stream.stopped:
            break
    pieces.append(stream.finish())
    cut = min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))
    assert "".join(pieces) == stream.text == text[:cut]
    assert stream.stopped == (cut < len(text))


def test_a_character_of_several_tokens_waits_until_it_is_whole() -> None:
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode("🏰").ids
    assert len(tokens) > 1
    stream = TextStream(tokenizer)
    assert [stream.push(token) for token in tokens] == [""] * (len(tokens) - 1) + ["🏰"]


def test_half_a_character_at_the_end_is_shown_as_it_decodes() -> None:
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode("a🏰").ids[:-1]
    stream = TextStream(tokenizer)
    for token in tokens:
        stream.push(token)
    assert stream.finish().endswith("\ufffd")
    assert stream.text == tokenizer.prose(tokens)


def test_the_beginning_of_a_stop_string_is_held_back_until_it_is_not_one() -> None:
    tokenizer = byte_tokenizer()
    stream = TextStream(tokenizer, ["END."])
    given_out = [stream.push(token) for token in tokenizer.encode("xENDyEND.z").ids]
    assert "".join(given_out) == "xENDy"
    assert stream.stopped
    assert stream.finish() == ""


def test_smollm2s_tokenizer_is_rebuilt_from_its_gguf(smollm2_gguf: Path) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name
    )
    ours = open_weights(str(smollm2_gguf)).tokenizer()
    assert ours is not None
    for text in TEXTS:
        ids = ours.tokenizer.encode(text, add_special_tokens=False).ids
        assert ids == theirs(text, add_special_tokens=False).input_ids
        assert ours.tokenizer.decode(ids) == text
    chat = [{"role": "user", "content": "{source}\n\n{request}"}]
    expected = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert ours.prompt_format() == expected
    assert ours.eos == theirs.eos_token
    records = load_config("smollm2-135m").records
    assert records.prompt_format == expected, "the preset's form is the trunk's own"
    assert records.tokenizer.eos == ours.eos


def test_a_control_token_in_a_source_is_refused() -> None:
    with pytest.raises(UsageError, match="'<end>', which the model would read as a control token"):
        byte_tokenizer().prompt("A town.<end>", "Write.", "{source} {request}")


def test_a_tokenizer_that_cannot_be_rebuilt_is_refused() -> None:
    with pytest.raises(TrunkRefused, match="'llama'"):
        tokenizer_from_gguf({"tokenizer.ggml.model": "llama"}, "x.gguf")


def test_a_model_keeps_its_tokenizer(tmp_path: Path) -> None:
    model = text_model()
    model.tokenizer = byte_tokenizer()
    pdt.save_model(model, tmp_path / "model", with_trunk=True)
    again = pdt.load_model(tmp_path / "model").tokenizer
    assert again is not None
    for text in TEXTS:
        assert again.encode(text) == byte_tokenizer().encode(text)
    assert again.eos_id == byte_tokenizer().eos_id
