"""One lane of one document: what it has written, its random stream, and when it stops.

Paper: §3.6, §7.2.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor

from pdt.generation.drafts import DECIDED, NOTHING, Draft, Lookup
from pdt.generation.events import FinishReason, Section
from pdt.generation.quoting import Quoting
from pdt.generation.sampling import choose_token, lane_generator
from pdt.generation.settings import GenerationSettings
from pdt.generation.text import TextStream
from pdt.tokenizer import StudentTokenizer

Continuations = Mapping[tuple[int, ...], Sequence[int]]
"""Tokens that follow whenever a lane has just written the key: its next words are decided."""


class LaneWriter:
    """Takes logits, writes tokens. It knows nothing of its siblings."""

    def __init__(
        self,
        lane: int,
        settings: GenerationSettings,
        tokenizer: StudentTokenizer | None,
        eos: Sequence[int],
        forced: Sequence[int] = (),
        continuations: Continuations | None = None,
        lookup: Lookup | None = None,
        quoting: Quoting | None = None,
    ) -> None:
        self.lane = lane
        self.tokens: list[int] = []
        self.reason: FinishReason | None = None
        self._settings = settings
        self._generator = lane_generator(settings.seed, lane)
        self._eos = frozenset(eos)
        self._forced = list(forced)
        self._continuations = continuations or {}
        self._lookup = lookup
        self._quoting = quoting
        self._stream = None if tokenizer is None else TextStream(tokenizer, settings.stop)

    def take(self, logits_V: Tensor) -> str:
        """Choose one token and return the text it makes certain."""
        if self._quoting is not None:
            logits_V = self._quoting.mask(logits_V)
        token = choose_token(logits_V, self.tokens, self._settings, self._generator)
        if self._forced:
            token = self._forced.pop(0)
        self.tokens.append(token)
        if self._lookup is not None:
            self._lookup.push(token)
        if self._quoting is not None:
            self._quoting.push(token)
        for cue, following in self._continuations.items():
            if not self._forced and tuple(self.tokens[-len(cue) :]) == cue:
                self._forced = list(following)
        if token in self._eos:
            self.reason = FinishReason.EOS
            return ""
        text = "" if self._stream is None else self._stream.push(token)
        if self._stream is not None and self._stream.stopped:
            self.reason = FinishReason.STOP
        elif len(self.tokens) >= self._settings.max_tokens:
            self.reason = FinishReason.LENGTH
        return text

    @property
    def left(self) -> int:
        """Tokens it may still write."""
        return self._settings.max_tokens - len(self.tokens)

    def draft(self, most: int) -> Draft:
        """What may come next: what is decided already, or what the lane has read before."""
        if self._lookup is None or most < 1:
            return NOTHING
        if self._forced:
            return Draft(DECIDED, tuple(self._forced[:most]))
        return self._lookup.draft(most)

    def finish(self) -> str:
        """The text that was still held back."""
        return "" if self._stream is None else self._stream.finish()

    def section(self) -> Section:
        assert self.reason is not None
        text = "" if self._stream is None else self._stream.text
        return Section(self.lane, text, tuple(self.tokens), self.reason)
