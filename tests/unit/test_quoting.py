"""Lanes that may only quote: every sentence stands in the source, and no lane says one twice."""

import pytest
import torch

import pdt
from pdt.errors import UsageError
from pdt.generation.events import FinishReason
from pdt.generation.quoting import Quoting, Sentences
from pdt.generation.replay import differences, replay
from pdt.generation.trace import trace_of
from pdt.sentences.support import paragraphs_of

SOURCE = """# The mill

The mill (a stone building) stands in the town of Hulm. It was built in the year 1820 by the guild.

The mill burned down in the year 1901. The guild of weavers restored it. It was sold at last."""
SAID = {
    "The mill (a stone building) stands in the town of Hulm.",
    "The mill stands in the town of Hulm.",
    "It was built in the year 1820 by the guild.",
    "The mill burned down in the year 1901.",
    "The guild of weavers restored it.",
    "It was sold at last.",
}
REQUEST = "What is said of the mill? Tell it."


@pytest.fixture(scope="module")
def writer() -> pdt.Writer:
    return pdt.Writer.load("nano")


def sentences_of(writer: pdt.Writer, source: str = SOURCE) -> Sentences:
    prompt = writer.prompt(source, REQUEST)
    return Sentences(prompt, writer.model.config, writer.tokenizer)


@pytest.mark.parametrize("temperature", [0.0, 3.0])
def test_every_sentence_of_a_quoting_lane_stands_in_the_source_and_is_said_once(
    writer: pdt.Writer, temperature: float
) -> None:
    for seed in range(3):
        done = writer.generate(SOURCE, REQUEST, quote=True, temperature=temperature, seed=seed)
        for section in done.documents[0].sections:
            written = paragraphs_of(section.text)
            assert section.reason is FinishReason.EOS
            assert written and set(written) <= SAID
            bare = [text.replace("(a stone building) ", "") for text in written]
            assert len(set(bare)) == len(bare), "a sentence without its parentheses is the same one"


def test_what_nobody_chooses_follows_the_tree_alone(writer: pdt.Writer) -> None:
    """With logits that prefer nothing of the source, all that is possible still is."""
    tokenizer = writer.tokenizer
    lane = Quoting(sentences_of(writer), [tokenizer.eos_id])
    tokens: list[int] = []
    logits = torch.arange(writer.model.config.trunk.shape.vocabulary).float()
    while not tokens or tokens[-1] != tokenizer.eos_id:
        masked = lane.mask(logits.roll(len(tokens)))
        assert masked.isfinite().any(), tokenizer.decode(tokens)
        tokens.append(int(masked.argmax()))
        lane.push(tokens[-1])
        assert len(tokens) < 500
    assert set(paragraphs_of(tokenizer.prose(tokens))) <= SAID


def test_a_request_is_nothing_to_quote(writer: pdt.Writer) -> None:
    first = writer.tokenizer.encode(REQUEST).ids[0]
    lane = Quoting(sentences_of(writer), [writer.tokenizer.eos_id])
    allowed = lane.mask(torch.zeros(writer.model.config.trunk.shape.vocabulary)).isfinite()
    assert not allowed[first] and int(allowed.sum()) == 2  # The, It


def test_a_source_without_sentences_cannot_be_quoted(writer: pdt.Writer) -> None:
    with pytest.raises(UsageError, match="no sentence to quote"):
        writer.begin([("# Only a heading", REQUEST)], quote=True)


def test_a_lane_that_may_only_quote_must_be_able_to_end() -> None:
    with pytest.raises(UsageError, match="quote needs stop_at_eos"):
        pdt.GenerationSettings(quote=True, stop_at_eos=False)


def test_a_quoting_run_replays_and_its_drafts_change_nothing(writer: pdt.Writer) -> None:
    written = []
    for drafts in (0, 4):
        running = writer.begin([(SOURCE, REQUEST)], quote=True, drafts=drafts)
        for _ in running.events():
            pass
        trace = trace_of(running)
        again = replay(writer.model, trace, writer.tokenizer)
        for _ in again.events():
            pass
        assert differences(trace, again) == []
        written.append([lane.tokens for lane in running.writers[0]])
    assert written[0] == written[1]
