"""Tokens a second that a card's memory allows: a prediction, from its maker's bandwidth alone.

No card has run this model. A round cannot be faster than the reading of its weights in BF16;
caches, launches and arithmetic come on top.

Paper: §3.6.
"""

from dataclasses import dataclass

from pdt.config import PdtConfig
from pdt.model.census import BF16, Census, traffic


@dataclass(frozen=True)
class Card:
    name: str
    gigabytes: float
    gigabytes_per_second: float


CARDS = (
    Card("RTX 3060 12 GB", 12, 360),
    Card("L4 24 GB", 24, 300),
    Card("RTX 4090 24 GB", 24, 1008),
    Card("A100 80 GB SXM", 80, 2039),
    Card("H100 80 GB SXM", 80, 3350),
)
"""By their makers' data sheets."""


@dataclass(frozen=True)
class Prediction:
    card: str
    fits: bool
    """Whether all weights in BF16 go into its memory; caches are not counted."""
    packed: float
    """Tokens a second of all lanes together, at most."""
    serial: float
    """The same, one lane after another."""


def predict(config: PdtConfig, census: Census) -> list[Prediction]:
    """At batch one, without caches, drafts or any loss: what reading the weights alone allows."""
    weights, lanes = traffic(config, census), config.lanes.count
    # Plan-KV and SNC: query and output maps, which every round reads once.
    reads = 2 * config.upper_layers * 2 * config.trunk.shape.width * config.reads.width
    packed = (weights.packed_round + reads) * BF16
    serial = (weights.serial_rounds + lanes * reads) * BF16
    return [
        Prediction(
            card.name,
            census.total * BF16 <= card.gigabytes * 1e9,
            lanes * card.gigabytes_per_second * 1e9 / packed,
            lanes * card.gigabytes_per_second * 1e9 / serial,
        )
        for card in CARDS
    ]
