"""Tokens to text as they come: whole characters only, and stop strings held back.

The pieces of a lane, joined, are the decoding of its tokens at once.
"""

from collections.abc import Sequence

from pdt.tokenizer import StudentTokenizer


class TextStream:
    """One lane's text, growing. A character whose bytes are not all there yet waits."""

    def __init__(self, tokenizer: StudentTokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._tokens: list[int] = []
        self._start = 0
        self._shown = 0
        self._held = ""
        self.text = ""
        """What has been given out."""
        self.stopped = False
        """A stop string has been written."""

    def push(self, token: int) -> str:
        """The text that this token makes certain."""
        if self.stopped:
            return ""
        self._tokens.append(token)
        # Decoding from a few tokens back keeps what a tokenizer does between neighbours.
        before = self._tokenizer.prose(self._tokens[self._start : self._shown])
        now = self._tokenizer.prose(self._tokens[self._start :])
        if now.endswith("\ufffd") or len(now) <= len(before):
            return ""
        self._start, self._shown = self._shown, len(self._tokens)
        return self._give(now[len(before) :])

    def finish(self) -> str:
        """What was still held back when the lane ended."""
        if self.stopped:
            return ""
        before = self._tokenizer.prose(self._tokens[self._start : self._shown])
        now = self._tokenizer.prose(self._tokens[self._start :])
        rest = self._give(now[len(before) :])
        if self.stopped:
            return rest
        held, self._held = self._held, ""
        self.text += held
        return rest + held

    def _give(self, piece: str) -> str:
        """Pass text on, up to a stop string, keeping back what may be the beginning of one."""
        pending = self._held + piece
        found = [at for stop in self._stop if (at := pending.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            out = pending[: min(found)]
        else:
            keep = max((_overlap(pending, stop) for stop in self._stop), default=0)
            out, self._held = pending[: len(pending) - keep], pending[len(pending) - keep :]
        self.text += out
        return out


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)
