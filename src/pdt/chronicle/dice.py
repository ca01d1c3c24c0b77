"""Randomness that is the same on every machine: a stream is named by words, not by order."""

import hashlib
import random


class Dice(random.Random):
    """A random stream whose every draw comes from `random()`, so no library version can change it.

    Exactly uniform over 2^h choices: `random()` has 53 even bits.
    """

    def _randbelow(self, n: int) -> int:
        return int(self.random() * n)


def digest_of(*labels: object) -> bytes:
    """32 bytes that depend on nothing but the labels."""
    return hashlib.sha256("\x1f".join(map(str, labels)).encode()).digest()


def dice(*labels: object) -> random.Random:
    """A random stream for one purpose, for example `dice(seed, 7, "world")`."""
    return Dice(int.from_bytes(digest_of(*labels), "big"))


def share(*labels: object) -> float:
    """A number from 0 to 1 that belongs to these labels for ever."""
    return int.from_bytes(digest_of(*labels)[:8], "big") / 2**64
