"""Many generations at once: each runs its own loop, and all share one round.

A generation joins between two rounds and leaves at its end. Its prompt is read, its plan made and
its notes written by itself; only the round is shared, and there a row does not depend on the rows
beside it. So what it writes is what it would write alone, to the bit. A document's blocks begin
when it joins: its barriers are its own, and one that waits at a barrier holds nobody up.

Paper: §3.6.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.generation.events import Event
from pdt.generation.loop import Generation
from pdt.generation.rounds import (
    Advanced,
    RoundAsked,
    by_lane,
    next_logits,
    real_rows,
    rounds_alone,
)
from pdt.model.kernels.held import HeldFrontier
from pdt.model.kernels.round import CompiledLayers, NativeRound, SharedRound
from pdt.model.pdt import ParallelDecoder


@dataclass
class _Member:
    generation: Generation
    running: Generator[Event | RoundAsked, Advanced | None]
    asked: RoundAsked | None = None
    held: HeldFrontier | None = None
    alone: Callable[[RoundAsked], Advanced] | None = None
    """Where the compiled round does not fit: its rounds are its own."""


class Pack:
    """Generations under way, by name."""

    def __init__(self, model: ParallelDecoder) -> None:
        self._model = model
        self._members: dict[str, _Member] = {}
        self._compiled: CompiledLayers | None = None
        self._shared: tuple[list[HeldFrontier], SharedRound] | None = None

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def join(self, name: str, generation: Generation) -> None:
        """It begins with its first `next_event`, which reads its prompt."""
        self._members[name] = _Member(generation, generation.run())

    def leave(self, name: str) -> None:
        """Its rows are free from the next round on."""
        member = self._members.pop(name, None)
        if member is not None:
            member.running.close()

    def next_event(self, name: str) -> Event | None:
        """What a generation says next; None when it waits for a round, or has ended and left."""
        member = self._members[name]
        if member.asked is not None:
            return None
        return self._resume(name, None)

    def round(self, names: list[str]) -> list[tuple[str, Event | Exception]]:
        """One shared round of those that wait for one, and the first event each says after it.

        One that fails says its error, and has left; the others do not notice.
        """
        asking = [name for name in names if self._members[name].asked is not None]
        with torch.inference_mode():
            answers = self._answers([self._members[name] for name in asking])
        said: list[tuple[str, Event | Exception]] = []
        for name, answer in zip(asking, answers, strict=True):
            self._members[name].asked = None
            try:
                event = self._resume(name, answer)
            except Exception as error:
                self.leave(name)
                said.append((name, error))
            else:
                if event is not None:
                    said.append((name, event))
        return said

    def _resume(self, name: str, answer: Advanced | None) -> Event | None:
        member = self._members[name]
        member.generation.company = sum(
            other.generation.lanes_writing
            for other in self._members.values()
            if other is not member
        )
        with torch.inference_mode():
            try:
                said = member.running.send(answer)
            except StopIteration:
                self.leave(name)
                return None
        if isinstance(said, RoundAsked):
            member.asked = said
            return None
        return said

    def _answers(self, members: list[_Member]) -> list[Advanced]:
        for member in members:
            self._place(member)
        together = [member for member in members if member.alone is None]
        shared = iter(self._with_logits(together, self._round(together)) if together else ())
        return [
            next(shared) if member.alone is None else member.alone(_asked(member))
            for member in members
        ]

    def _place(self, member: _Member) -> None:
        if member.held is not None or member.alone is not None:
            return
        frontier = _asked(member).frontier
        if NativeRound.fits(self._model, frontier):
            member.held = HeldFrontier(self._model, frontier)
        else:
            member.alone = rounds_alone(self._model)

    def _round(self, members: list[_Member]) -> list[Tensor]:
        held = [member.held for member in members if member.held is not None]
        if self._shared is None or self._shared[0] != held:
            self._compiled = self._compiled or CompiledLayers(self._model)
            self._shared = (held, SharedRound(self._compiled, held))
        asked = [_asked(member) for member in members]
        return self._shared[1](
            [one.tokens_BKT for one in asked],
            [one.notes for one in asked],
            [one.counts_BK for one in asked],
        )

    def _with_logits(self, members: list[_Member], states: list[Tensor]) -> list[Advanced]:
        counts = [_asked(member).counts_BK for member in members]
        rows = [real_rows(h, some) for h, some in zip(states, counts, strict=True)]
        found = next_logits(self._model, torch.cat(rows)).split([len(some) for some in rows])
        return [
            Advanced(h, by_lane(part, some))
            for h, part, some in zip(states, found, counts, strict=True)
        ]


def _asked(member: _Member) -> RoundAsked:
    assert member.asked is not None
    return member.asked
