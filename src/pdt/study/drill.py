"""Drill documents: lanes name things and recall each other's, over and over, with hardly a prompt.

A Chronicle document has a handful of coined words among hundreds, too few for an untrained bus to
be learned from both ends at once (docs/log.md). A drill document has twelve: in one block every
lane names a thing, in the next it recalls its siblings', twice over. Its sentences are Chronicle's.
"""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pdt.chronicle.coins import SECOND_THINGS, Coin, draw_coin
from pdt.chronicle.names import COINED
from pdt.errors import UsageError
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer
from pdt.training.losses import NoteEdges

ROUNDS = 2
"""Of naming and recalling; each takes two blocks."""
BITS = (1, 2, 3)
"""What a word tells; one thing of each for the three lanes."""
REQUEST = "Describe what happened in three sections.\n\n"


@dataclass(frozen=True)
class DrillBatch:
    """A batch of drill documents, ready for a rollout."""

    section_tokens_BKT: Tensor
    dependency_token_BKT: Tensor
    edges: NoteEdges


class Drill:
    """Writes drill documents out of the sentences of a corpus."""

    def __init__(
        self,
        documents: Iterable[TaughtDocument],
        tokenizer: StudentTokenizer,
        block_tokens: int,
        bits: Sequence[int] = BITS,
    ) -> None:
        self.tokenizer, self.block, self.bits = tokenizer, block_tokens, tuple(bits)
        self._sentences = [
            ids
            for document in documents
            for section in document.answer.sections
            for sentence in section.text.replace("\n\n", " ").split(". ")
            if not any(word in sentence for word in COINED)
            and len(ids := self._ids(f" {sentence.removesuffix('.')}.")) >= 8
        ]

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.bits, self._sentences]).encode()).hexdigest()

    def batch(self, stream: random.Random, size: int, *, distance: int) -> DrillBatch:
        """Coined words end at most `distance` tokens before their block does."""
        drawn = [self._document(stream, distance) for _ in range(size)]
        sections = torch.tensor([sections for sections, _ in drawn])
        dependency = torch.zeros_like(sections, dtype=torch.bool)
        for b, (_, uses) in enumerate(drawn):
            for _, _, lane, token in uses:
                dependency[b, lane, token] = True
        owner, block, receiver, place = torch.tensor([uses for _, uses in drawn]).unbind(-1)
        row = torch.arange(size)[:, None]
        tokens = sections[row, receiver, place]
        ones = torch.ones_like(owner)
        return DrillBatch(sections, dependency, NoteEdges(owner, block, ones, tokens, ones.bool()))

    def _document(
        self, stream: random.Random, distance: int
    ) -> tuple[list[list[int]], list[tuple[int, int, int, int]]]:
        """Tokens of every lane, and (owner, block, receiver, place) of every recalled word."""
        lanes: list[list[int]] = [[] for _ in self.bits]
        uses = []
        for turn in range(ROUNDS):
            bits = stream.sample(self.bits, len(self.bits))
            coins = [draw_coin(stream, h, second=turn == 1) for h in bits]
            for lane, coin in zip(lanes, coins, strict=True):
                lane += self._naming(stream, coin, stream.randrange(distance + 1))
            for receiver, lane in enumerate(lanes):
                block, words = self._recalling(stream, coins, receiver)
                uses += [(owner, 2 * turn, receiver, len(lane) + at) for owner, at in words]
                lane += block
        return lanes, uses

    def _naming(self, stream: random.Random, coin: Coin, after: int) -> list[int]:
        """A block in which `after` tokens follow the word."""
        said, place = self._said(stream, coin.thing.naming, coin)
        tail = [*said[place + 1 :], *self._filler(stream, self.block)][:after]
        said = said[: place + 1][-(self.block - after) :]
        return [*self._filler(stream, self.block - after - len(said)), *said, *tail]

    def _recalling(
        self, stream: random.Random, coins: list[Coin], receiver: int
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """A block that recalls what the siblings named, and where each owner's word stands."""
        owners = [owner for owner in range(len(coins)) if owner != receiver]
        stream.shuffle(owners)
        block, words = self._filler(stream, stream.randrange(1, 4)), []
        for owner in owners:
            said, place = self._said(stream, coins[owner].thing.recalling, coins[owner])
            words.append((owner, len(block) + place))
            block += said
        over = max(len(block) - self.block, 0)  # the first sentence may lack its beginning
        block += self._filler(stream, self.block - len(block))
        return block[over:], [(owner, place - over) for owner, place in words]

    def _said(
        self, stream: random.Random, forms: tuple[str, ...], coin: Coin
    ) -> tuple[list[int], int]:
        """A sentence about the thing, and where in it the word stands."""
        ids = self._ids(" " + stream.choice(forms).format(name=coin.name))
        (word,) = self._ids(f" {coin.name}")
        return ids, ids.index(word)

    def _filler(self, stream: random.Random, tokens: int) -> list[int]:
        """So many tokens of other prose; only its first sentence may lack a beginning."""
        found: list[int] = []
        while len(found) < tokens:
            found += stream.choice(self._sentences)
        return found[len(found) - tokens :] if tokens > 0 else []

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)


def read_bits(text: str) -> tuple[int, ...]:
    """`5,6,7`: a different number for each of the three lanes, as far as there are words."""
    found = tuple(int(part) for part in text.split(",") if part.isdecimal())
    most = len(SECOND_THINGS)  # a drill document names two things of each lane
    if len(set(found)) != len(BITS) or not all(1 <= h <= most for h in found):
        raise UsageError(
            f"--bits {text!r} is not {len(BITS)} different numbers from 1 to {most}.\n"
            "Give one a lane, as in 5,6,7."
        )
    return found
