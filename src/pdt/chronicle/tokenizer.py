"""The small tokenizer of Chronicle's own words, so that records compile without a network.

Every word that Chronicle writes is one token, digits stand alone, and the 256 bytes below them give
any other text an encoding too. The same text makes the same bytes;
`pdt/tokenizers/nano.tokenizer.json` is what `pdt chronicle tokenizer` makes.
"""

import re
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from pdt.chronicle.names import (
    COINED,
    GIVEN,
    NAME_POOLS,
    PLACE_ENDS,
    PLACE_STEMS,
    PLACES,
    SURNAME_ENDS,
    SURNAME_STEMS,
    SURNAMES,
)
from pdt.errors import UsageError
from pdt.tokenizer import Encoded

EOS = "</s>"
WORD_SCORE, BYTE_SCORE = -8.0, -32.0
"""A word as one piece always beats the same word in bytes."""

_WORD = re.compile(r"\d|[^\W\d]+|[^\w\s]|\n+")


class WordTokenizer:
    """Words, digits and punctuation: what documents are measured with before a tokenizer exists."""

    def encode(self, text: str) -> Encoded:
        spans = [match.span() for match in _WORD.finditer(text)]
        return Encoded(list(range(len(spans))), spans)


def build_tokenizer(texts: Iterable[str], *, most: int, parts: bool = False) -> str:
    """The tokenizer.json whose pieces are the words of `texts`, at most `most` pieces in all.

    With `parts` a name of parts is its stem and its end, and never a piece.
    """
    splitter = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    whole = (*GIVEN, *COINED) if parts else (*GIVEN, *SURNAMES, *PLACES, *COINED)
    found = {f"Ġ{name}" for name in whole}
    for text in texts:
        found.update(piece for piece, _ in splitter.pre_tokenize_str(text))
    if parts:
        pools = (NAME_POOLS["parts"], NAME_POOLS["unseen"])
        composed = {name for pool in pools for name in (*pool.places, *pool.surnames)}
        found = {piece for piece in found if piece.removeprefix("Ġ") not in composed}
        found.update(f"Ġ{stem}" for stem in (*PLACE_STEMS, *SURNAME_STEMS))
        found.update((*PLACE_STEMS, *PLACE_ENDS, *SURNAME_ENDS))
    single = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = sorted(found.difference(single))
    pieces = [EOS, *single, *words]
    if len(pieces) > most:
        raise UsageError(
            f"Chronicle's text has {len(words)} words, {len(pieces)} pieces with bytes and "
            f"{EOS}; the trunk's vocabulary is {most}.\nRaise trunk.shape.vocabulary."
        )
    scores = dict.fromkeys([EOS, *single], BYTE_SCORE)
    tokenizer = Tokenizer(models.Unigram([(p, scores.get(p, WORD_SCORE)) for p in pieces], 0))
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([EOS])
    return str(tokenizer.to_str(pretty=True)) + "\n"
