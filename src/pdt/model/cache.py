"""What a layer remembers of the tokens before: past segments, and a private suffix that grows.

Two forms with one verb, `extend`: decoding writes into a buffer it owns; training keeps one segment
a block, because autograd must find every block's keys as they were.

Paper: §3.1, §3.3.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from pdt.model.attention import Segment


class LayerMemory(Protocol):
    """Takes the keys and values of new tokens, returns all segments those tokens may read."""

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]: ...

    @property
    def past(self) -> Sequence[Segment]: ...


class SegmentList:
    """Every extension is a new segment; nothing is copied, gradients flow."""

    def __init__(self, past: Sequence[Segment] = ()) -> None:
        self.past: Sequence[Segment] = tuple(past)

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        self.past = (*self.past, Segment(k_BKGTX, v_BKGTX))
        return self.past


class SuffixBuffer:
    """A preallocated private suffix behind read-only past segments, for decoding."""

    def __init__(self, past: Sequence[Segment], capacity: int) -> None:
        self._before = tuple(past)
        self._capacity = capacity
        self._k: Tensor | None = None
        self._v: Tensor | None = None
        self.length = 0

    @property
    def past(self) -> Sequence[Segment]:
        if self._k is None or self._v is None:
            return self._before
        k, v = (x[:, :, :, : self.length] for x in (self._k, self._v))
        return (*self._before, Segment(k, v))

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        B, K, G, T, X = k_BKGTX.shape
        if self._k is None or self._v is None:
            self._k = k_BKGTX.new_empty(B, K, G, self._capacity, X)
            self._v = v_BKGTX.new_empty(B, K, G, self._capacity, X)
        stop = self.length + T
        if stop > self._capacity:
            raise IndexError(f"the suffix holds {self._capacity} tokens a lane, asked for {stop}")
        self._k[:, :, :, self.length : stop] = k_BKGTX
        self._v[:, :, :, self.length : stop] = v_BKGTX
        self.length = stop
        return self.past
