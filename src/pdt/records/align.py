"""From the characters of a section to its tokens, and from tokens to blocks.

A token belongs to a quote when it covers at least one of the quote's characters. A character of
several bytes may be split over tokens that all cover it; all of them belong.

Paper: §4.3.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pdt.config import PdtConfig
from pdt.sources.quote import Quote
from pdt.teacher.answer import TargetSection
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer, prompt_text


@dataclass(frozen=True)
class LaneTokens:
    """One section as the student writes it: its tokens, one EOS, in blocks of τ."""

    ids: tuple[int, ...]
    """Every token, EOS last."""
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """Characters covered by each token but EOS; both never decrease."""
    block_tokens: int

    @property
    def blocks(self) -> int:
        """Blocks of this lane, the last one perhaps not complete."""
        return -(-len(self.ids) // self.block_tokens)

    @property
    def published_blocks(self) -> int:
        """Blocks that write a note: those completed by prose, before EOS stops the lane."""
        return len(self.starts) // self.block_tokens

    def block_of(self, token: int) -> int:
        return token // self.block_tokens

    def choosing_block(self, token: int) -> int:
        """The block whose state chooses `token`: that of the token before it; -1 is the prompt.

        So a block's first token is chosen before the notes of the block before it are read.

        Paper: §5.2.
        """
        return (token - 1) // self.block_tokens

    def tokens_of(self, start: int, end: int) -> range:
        """The tokens that cover characters `start` to `end`."""
        return tokens_between(self.starts, self.ends, start, end)

    def tokens_of_quote(self, quote: Quote) -> range:
        return self.tokens_of(quote.start, quote.end)

    def blocks_of_quote(self, quote: Quote) -> range:
        """Every block that the quote touches."""
        tokens = self.tokens_of_quote(quote)
        if not tokens:
            return range(0)
        return range(self.block_of(tokens[0]), self.block_of(tokens[-1]) + 1)


@dataclass(frozen=True)
class DocumentTokens:
    """A whole document as the student sees it."""

    source_tokens: int
    """Length of the article alone."""
    prompt: tuple[int, ...]
    """Source and request, once for all lanes."""
    facts: tuple[range, ...]
    """Of the prompt, the tokens of each fact's quote."""
    lanes: tuple[LaneTokens, ...]
    """One entry per section."""


def tokenize_document(
    document: TaughtDocument, config: PdtConfig, tokenizer: StudentTokenizer
) -> DocumentTokens:
    """Source, prompt and sections in the student's tokens."""
    prompt_format = config.records.prompt_format
    prompt = prompt_text(document.article.text, document.answer.request, prompt_format)
    encoded = tokenizer.encode(prompt)
    starts, ends = monotone(encoded.spans)
    source = prompt_format.index("{source}")
    return DocumentTokens(
        source_tokens=len(tokenizer.encode(document.article.text).ids),
        prompt=tuple(encoded.ids),
        facts=tuple(
            tokens_between(starts, ends, source + start, source + end)
            for start, end in _fact_characters(document)
        ),
        lanes=tuple(
            tokenize_section(section, tokenizer, block_tokens=config.lanes.block_tokens)
            for section in document.answer.sections
        ),
    )


def _fact_characters(document: TaughtDocument) -> Iterator[tuple[int, int]]:
    """Where each fact's quote stands in the article's text."""
    begins = document.article.paragraph_starts()
    for fact in document.inventory.facts:
        begin = begins.get(fact.paragraph_id, 0)  # an unknown paragraph is refused by its own rule
        yield begin + fact.quote.start, begin + fact.quote.end


def tokens_between(starts: Sequence[int], ends: Sequence[int], start: int, end: int) -> range:
    """The tokens that cover characters `start` to `end`, by the characters that each covers."""
    return range(bisect_right(ends, start), bisect_left(starts, end))


def tokenize_section(
    section: TargetSection, tokenizer: StudentTokenizer, *, block_tokens: int
) -> LaneTokens:
    """The student's tokens of one section, and the EOS that lets the lane learn to stop."""
    encoded = tokenizer.encode(section.text)
    starts, ends = monotone(encoded.spans)
    return LaneTokens((*encoded.ids, tokenizer.eos_id), starts, ends, block_tokens)


def monotone(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Starts and ends, where neither falls below the one before.

    Tokenizers report an empty span for a token they cannot place; it takes its neighbour's edge.
    """
    starts = accumulate((start for start, _ in spans), max)
    ends = accumulate((end for _, end in spans), max)
    return tuple(starts), tuple(ends)
