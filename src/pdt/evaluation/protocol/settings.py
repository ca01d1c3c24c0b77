"""The settings of one evaluation, as they are stored.

Paper: §7.1.
"""

from typing import Annotated, Literal

from pydantic import Field

from pdt.contract import Contract, Id, Index
from pdt.evaluation.measures.longform import LongformLimits

MOST_DOCUMENTS = 256
"""Unless more are asked for."""
FEW_DOCUMENTS = 64
"""Of destructive controls and harder gates, unless more are asked for."""
REPEATS = 3
"""How often the clock is asked about each way of writing a document, unless told otherwise."""


class EvaluationSettings(Contract):
    """What was asked for; the same settings on the same files give the same numbers."""

    documents: Annotated[int, Field(ge=2)] = MOST_DOCUMENTS
    """Held-out documents that were judged, the first of the corpus."""
    few_documents: Annotated[int, Field(ge=2)] = FEW_DOCUMENTS
    """How many of them the destructive controls and the harder gates are measured on."""
    repeats: Annotated[int, Field(ge=1)] = REPEATS
    """How often each timed document is written each way, the ways in turn."""
    batch: Annotated[int, Field(ge=2)] = 32
    """Documents that are written side by side."""
    plan: Literal["learned", "oracle"] = "learned"
    """The plan that every condition but `oracle` starts from."""
    conditions: tuple[Id, ...] = ()
    """Which ones ran; empty for all."""
    screen: Id = "exact"
    """The screen whose judgments the tables use."""
    nli_documents: Index = 32
    """How many documents the NLI screen judges beside the exact one."""
    max_tokens: Annotated[int, Field(ge=1)] = 1000
    longform: LongformLimits
    block_tokens: Annotated[int, Field(ge=1)]
    window_blocks: Annotated[int, Field(ge=1)]
    note_delay_blocks: Annotated[int, Field(ge=1)] = 1
    """Δ of the bus checkpoint: a note of block b is read in blocks b+Δ and after."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    resamples: Annotated[int, Field(ge=100)] = 10_000
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
