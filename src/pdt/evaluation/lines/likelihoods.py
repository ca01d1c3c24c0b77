"""The likelihood of every target token under a condition: lines that are stored.

Paper: §7.3.
"""

from pdt.contract import Contract, Id


class Likelihoods(Contract):
    """A line of likelihoods.jsonl: one document, teacher-forced under one condition."""

    condition: Id
    record_id: Id
    nll: tuple[tuple[float, ...], ...]
    """By teacher lane, of every token, EOS included; in nats."""
    choices: dict[str, tuple[float, ...]]
    """By dependency, log p of each alternative's first token where the receiver needs it."""
