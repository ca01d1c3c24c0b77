"""Text as it comes: whole characters, stop strings, and the trunk's own tokenizers."""

from pathlib import Path

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

import pdt
from pdt.errors import TrunkRefused
from pdt.generation.text import TextStream
from pdt.model.tokenizer import tokenizer_from_gguf, tokenizer_from_model
from pdt.model.weights import open_weights
from tests.generations import byte_tokenizer, text_model

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
    for token in tokenizer.encode(text):
        pieces.append(stream.push(token))
        if stream.stopped:
            break
    pieces.append(stream.finish())
    cut = min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))
    assert "".join(pieces) == stream.text == text[:cut]
    assert stream.stopped == (cut < len(text))


def test_a_character_of_several_tokens_waits_until_it_is_whole() -> None:
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode("🏰")
    assert len(tokens) > 1
    stream = TextStream(tokenizer)
    assert [stream.push(token) for token in tokens] == [""] * (len(tokens) - 1) + ["🏰"]


def test_half_a_character_at_the_end_is_shown_as_it_decodes() -> None:
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode("a🏰")[:-1]
    stream = TextStream(tokenizer)
    for token in tokens:
        stream.push(token)
    assert stream.finish().endswith("\ufffd")
    assert stream.text == tokenizer.decode(tokens)


def test_the_beginning_of_a_stop_string_is_held_back_until_it_is_not_one() -> None:
    tokenizer = byte_tokenizer()
    stream = TextStream(tokenizer, ["END."])
    given_out = [stream.push(token) for token in tokenizer.encode("xENDyEND.z")]
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
        assert ours.encode(text) == theirs(text, add_special_tokens=False).input_ids
        assert ours.decode(ours.encode(text)) == text
    chat = [{"role": "user", "content": "A source.\n\nA request."}]
    expected = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert (
        ours.tokenizer.decode(ours.prompt("A source.", "A request."), skip_special_tokens=False)
        == expected
    )
    assert ours.eos_tokens == (theirs.eos_token_id,)


def test_a_tokenizer_that_cannot_be_rebuilt_is_refused() -> None:
    with pytest.raises(TrunkRefused, match="'llama'"):
        tokenizer_from_gguf({"tokenizer.ggml.model": "llama"}, "x.gguf")


def test_a_model_keeps_its_tokenizer(tmp_path: Path) -> None:
    model = text_model()
    model.tokenizer = byte_tokenizer()
    pdt.save_model(model, tmp_path / "model", with_trunk=True)
    again = tokenizer_from_model(tmp_path / "model")
    assert again is not None
    for text in TEXTS:
        assert again.encode(text) == byte_tokenizer().encode(text)
    assert again.eos_tokens == byte_tokenizer().eos_tokens
