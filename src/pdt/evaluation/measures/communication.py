"""The causal communication measure: what removing the notes costs, token by token.

The exact target is run again with an edited bus or table and the same Plan-KV. Δ is what a token
loses in likelihood; the measure is its document mean on dependency tokens, on all other tokens, and
the difference of the two.

Paper: §7.3, Eq. 10.
"""

from collections.abc import Sequence

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.likelihoods import Likelihoods


def mean_nll(document: HeldOutDocument, scored: Likelihoods, *, dependency: bool) -> float | None:
    """The document's mean NLL on dependency tokens, or on all other active tokens."""
    kept = [
        value
        for lane, marked in zip(scored.nll, document.dependency_tokens, strict=True)
        for value in _of_kind(lane, frozenset(marked), dependency)
    ]
    return sum(kept) / len(kept) if kept else None


def _of_kind(lane: Sequence[float], marked: frozenset[int], dependency: bool) -> list[float]:
    return [value for token, value in enumerate(lane) if (token in marked) == dependency]
