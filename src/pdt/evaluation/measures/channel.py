"""The channel under load: words of many bits, from anywhere in a block, over many blocks.

Paper: §3.5, §7.3; the gates are ours (H7).
"""

from collections.abc import Callable, Mapping
from functools import partial

from pdt.evaluation.lines.document import HeldOutChoice, HeldOutDocument
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.measures import bits
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.protocol.conditions import BUS, SELF_ONLY

STRONG_BITS = 6.0
"""A word of 64 or more: nobody guesses it."""
THIRDS = ("first", "middle", "last")

Kind = Callable[[HeldOutChoice], bool]


def channel_measures(evidence: Evidence) -> Measured:
    """The share of h that arrived, teacher-forced, of strong words: all, by lag and by place."""
    block = evidence.settings.block_tokens
    rows: dict[str, dict[str, Likelihoods]] = {BUS.name: {}, SELF_ONLY.name: {}}
    for row in evidence.raw.likelihoods:
        if row.condition in rows:
            rows[row.condition][row.record_id] = row

    def strong(choice: HeldOutChoice) -> bool:
        return choice.entropy_bits >= STRONG_BITS

    measures: Measured = {
        f"channel.{name}.share": _share(evidence, scored, strong) for name, scored in rows.items()
    }

    def at_lag(lag: int, choice: HeldOutChoice) -> bool:
        return strong(choice) and lag_of(choice, block) == lag

    def in_third(third: int, choice: HeldOutChoice) -> bool:
        return strong(choice) and third_of(choice, block) == third

    bus = rows[BUS.name]
    chosen = [c for d in evidence.raw.documents for c in d.choices if strong(c)]
    for lag in sorted({lag_of(choice, block) for choice in chosen}):
        measures[f"channel.lag_{lag}.share"] = _share(evidence, bus, partial(at_lag, lag))
    for number, third in enumerate(THIRDS):
        kind = partial(in_third, number)
        measures[f"channel.{third}_third.share"] = _share(evidence, bus, kind)
    return measures


def lag_of(choice: HeldOutChoice, block_tokens: int) -> int:
    """Blocks from the owner's note to the state that chooses the receiver's word (reading 29)."""
    return (choice.receiver_token - 1) // block_tokens - choice.owner_token // block_tokens


def third_of(choice: HeldOutChoice, block_tokens: int) -> int:
    """In which third of its block the owner writes the word."""
    return choice.owner_token % block_tokens * len(THIRDS) // block_tokens


def _share(evidence: Evidence, rows: Mapping[str, Likelihoods], kind: Kind) -> Measure | None:
    h: dict[str, float] = {}
    received: dict[str, float] = {}
    for name, row in rows.items():
        document = _with(evidence.documents[name], kind)
        sent, lost = bits.entropy(document), bits.cross_entropy(document, row)
        if sent is not None and lost is not None:
            h[name], received[name] = sent, sent - lost
    return evidence.boot.ratio(received, h)


def _with(document: HeldOutDocument, kind: Kind) -> HeldOutDocument:
    choices = tuple(choice for choice in document.choices if kind(choice))
    return document.model_copy(update={"choices": choices})
