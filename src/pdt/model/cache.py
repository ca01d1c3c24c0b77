"""What a layer remembers of the tokens before: past segments, and a private suffix that grows.

Forms with one verb, `extend`: decoding writes into a buffer it owns; training keeps one segment a
block, because autograd must find every block's keys as they were; a finished past takes nothing in.

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
    """Every extension is a new segment; gradients flow.

    Keys and values are laid out once as products read them. Left as the projections return them,
    every later block would copy the whole prompt inside its product.
    """

    def __init__(self, past: Sequence[Segment] = ()) -> None:
        self.past: Sequence[Segment] = tuple(past)

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        self.past = (*self.past, Segment(k_BKGTX.contiguous(), v_BKGTX.contiguous()))
        return self.past


class Finished:
    """Past that holds the asking token itself already: it is read, and nothing is added."""

    def __init__(self, past: Segment) -> None:
        self.past: Sequence[Segment] = (past,)

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        return (*self.past, Segment(k_BKGTX[:, :, :, :0], v_BKGTX[:, :, :, :0]))


class SuffixBuffer:
    """A preallocated private suffix behind one read-only prompt segment, for decoding."""

    def __init__(self, prompt: Segment, lanes: int, capacity: int) -> None:
        B, _, G, _, X = prompt.k.shape
        k, v = prompt.k.contiguous(), prompt.v.contiguous()
        self.prompt = Segment(k, v, prompt.valid_BS)
        self.capacity = capacity
        self.k = k.new_empty(B, lanes, G, capacity, X)
        self.v = v.new_empty(B, lanes, G, capacity, X)
        self.length = 0

    @property
    def past(self) -> Sequence[Segment]:
        if self.length == 0:
            return (self.prompt,)
        k, v = (x[:, :, :, : self.length] for x in (self.k, self.v))
        return (self.prompt, Segment(k, v))

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        start = self.length
        stop = self.grow(k_BKGTX.shape[3])
        self.k[:, :, :, start:stop] = k_BKGTX
        self.v[:, :, :, start:stop] = v_BKGTX
        return self.past

    def grow(self, tokens: int) -> int:
        """Count `tokens` more as written, where there is room."""
        if self.length + tokens > self.capacity:
            raise IndexError(
                f"the suffix holds {self.capacity} tokens a lane, asked for {self.length + tokens}"
            )
        self.length += tokens
        return self.length
