"""Which lines an evaluation has: from its settings and checkpoints alone, before anything ran.

A run writes these lines, and `pdt verify` asks for exactly these.

Paper: §7.1.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pdt.config import PdtConfig
from pdt.evaluation.lines.document import HeldOutDocument, with_coined
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.longform import LongformLimits
from pdt.evaluation.protocol.conditions import (
    COINED,
    SCORED,
    Condition,
    Weights,
    along_with,
    chosen_conditions,
)
from pdt.evaluation.protocol.evidence_gates import FEWEST
from pdt.evaluation.protocol.settings import EvaluationSettings

EXECUTION_DOCUMENTS = FEWEST
"""Each takes seconds of its own; the gate on their speed-up reads a bound."""


@dataclass(frozen=True)
class Scope:
    """The conditions of each kind of line."""

    written: tuple[Condition, ...]
    scored: tuple[Condition, ...]
    coined: tuple[Condition, ...]


def scope_of(settings: EvaluationSettings, roles: Collection[str]) -> Scope:
    """The conditions that these checkpoints can run, all or those the settings name."""
    written = chosen_conditions(
        settings.conditions,
        with_self_only=Weights.SELF_ONLY in roles,
        with_learned=settings.plan == "learned",
    )
    return Scope(written, along_with(written, SCORED), along_with(written, COINED))


def asked_of(
    conditions: Sequence[Condition],
    documents: Sequence[HeldOutDocument],
    settings: EvaluationSettings,
    *,
    coined: bool = False,
) -> dict[Condition, list[HeldOutDocument]]:
    """The documents of each condition; of those in which something is coined, where `coined`."""
    chosen = with_coined(documents) if coined else documents
    return {c: c.which.of(chosen, few=settings.few_documents) for c in conditions}


def decided_settings(corpus: PdtConfig, model: PdtConfig) -> dict[str, Any]:
    """The settings that follow from the corpus and the bus checkpoint."""
    return {
        "max_tokens": corpus.records.limits.section_tokens.max,
        "longform": LongformLimits.of(corpus),
        "block_tokens": model.lanes.block_tokens,
        "window_blocks": model.notes.window_blocks,
        "note_delay_blocks": model.records.note_delay_blocks,
    }


def judged_by(screen: str, settings: EvaluationSettings, raw: Raw) -> list[Written]:
    """The chosen screen judges all; one beside it the plain runs of the first documents."""
    if screen == settings.screen:
        return raw.written
    some = {document.record_id for document in raw.documents[: settings.nli_documents]}
    plain = ("oracle", settings.plan)
    return [row for row in raw.written if row.record_id in some and row.condition in plain]


def timed_documents(raw: Raw) -> list[HeldOutDocument]:
    """The first ones, however many a batch has."""
    return raw.documents[:EXECUTION_DOCUMENTS]
