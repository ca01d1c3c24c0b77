"""What a layer remembers of the tokens before: past segments, and a private suffix that grows.

Forms with one verb, `extend`: decoding writes into a buffer it owns; training keeps one segment a
block, because autograd must find every block's keys as they were; a finished past takes nothing in.

Paper: §3.1, §3.3.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
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


class Taken:
    """How many tokens each lane has taken in: one count for the caches of all layers.

    Lanes may stand at different places inside a block. To set a lane back is to lower its count:
    what lies behind it is never read, and the next tokens are written over it.
    """

    def __init__(self, documents: int, lanes: int) -> None:
        self.counts_BK = [[0] * lanes for _ in range(documents)]

    @property
    def most(self) -> int:
        return max(map(max, self.counts_BK))

    @property
    def same(self) -> bool:
        """Whether all lanes stand at the same place."""
        return all(count == self.counts_BK[0][0] for row in self.counts_BK for count in row)

    def add(self, counts_BK: Sequence[Sequence[int]]) -> None:
        for row, added in zip(self.counts_BK, counts_BK, strict=True):
            row[:] = [count + more for count, more in zip(row, added, strict=True)]

    def add_everywhere(self, tokens: int) -> None:
        self.add([[tokens] * len(row) for row in self.counts_BK])

    def check_room(self, capacity: int, counts_BK: Sequence[Sequence[int]]) -> None:
        """Refuse tokens that would not fit in the buffers."""
        asked = max(
            count + more
            for row, added in zip(self.counts_BK, counts_BK, strict=True)
            for count, more in zip(row, added, strict=True)
        )
        if asked > capacity:
            raise IndexError(f"the suffix holds {capacity} tokens a lane, asked for {asked}")


class SuffixBuffer:
    """A preallocated private suffix behind one read-only prompt segment, for decoding.

    It is told by `taken` where each lane stands; whoever runs the layers counts the new tokens.
    """

    def __init__(self, prompt: Segment, lanes: int, capacity: int, taken: Taken) -> None:
        B, _, G, _, X = prompt.k.shape
        k, v = prompt.k.contiguous(), prompt.v.contiguous()
        self.prompt = Segment(k, v, prompt.valid_BS)
        self.capacity = capacity
        # Zeros, since a lane that is behind multiplies another's unwritten places by nothing.
        self.k = k.new_zeros(B, lanes, G, capacity, X)
        self.v = v.new_zeros(B, lanes, G, capacity, X)
        self.taken = taken

    @property
    def past(self) -> Sequence[Segment]:
        return self._upto(self.taken.most)

    def extend(self, k_BKGTX: Tensor, v_BKGTX: Tensor) -> Sequence[Segment]:
        T, most = k_BKGTX.shape[3], self.taken.most
        if self.taken.same:
            self.k[:, :, :, most : most + T] = k_BKGTX
            self.v[:, :, :, most : most + T] = v_BKGTX
            return self._upto(most + T)
        at_BKT = torch.tensor(self.taken.counts_BK)[..., None] + torch.arange(T)
        # A shorter run of the round is padded; what is past the end of the buffer is padding only.
        b, k, t = (at_BKT < self.capacity).nonzero(as_tuple=True)
        places = (b, k, t, at_BKT[b, k, t])
        b, k, t, at = (index.to(self.k.device) for index in places)
        self.k[b, k, :, at] = k_BKGTX[b, k, :, t]
        self.v[b, k, :, at] = v_BKGTX[b, k, :, t]
        return self._upto(min(most + T, self.capacity), (at_BKT + 1).to(self.k.device))

    def _upto(self, length: int, seen_BKT: Tensor | None = None) -> Sequence[Segment]:
        if length == 0:
            return (self.prompt,)
        k, v = (x[:, :, :, :length] for x in (self.k, self.v))
        return (self.prompt, Segment(k, v, seen_BKT=seen_BKT))
