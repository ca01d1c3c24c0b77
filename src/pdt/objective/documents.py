"""The one way losses are averaged: inside a document first, then over documents."""

from torch import Tensor


def mean_over_documents(values: Tensor, valid: Tensor) -> Tensor:
    """Mean of the valid values of each document, then of documents; one without any counts as 0."""
    kept = values.masked_fill(~valid, 0.0).flatten(1).sum(1)
    return (kept / valid.flatten(1).sum(1).clamp(min=1)).mean()
