"""What a generation says while it runs. Every view (text, JSON, terminal, server) reads these.

Paper: §3.6, Fig. 3.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pdt.generation.ledger import Ledger


class FinishReason(StrEnum):
    """Why a lane stopped writing."""

    EOS = "eos"
    STOP = "stop"
    LENGTH = "length"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class PlanReady:
    """The planner has run, once; lanes are about to write."""

    document: int
    prompt_tokens: int
    lane_at_position: tuple[int, ...]
    valid_nodes: tuple[tuple[int, ...], ...]
    """Per lane, the plan nodes that exist."""


@dataclass(frozen=True)
class LaneToken:
    """One lane's share of a round."""

    document: int
    lane: int
    token: int
    text: str
    """The text that became certain; empty while a character is not whole."""


@dataclass(frozen=True)
class Round:
    """One grouped forward has been sampled: one token for each lane still writing."""

    index: int
    lanes: tuple[LaneToken, ...]


@dataclass(frozen=True)
class Note:
    """What one lane published at a barrier."""

    document: int
    lane: int
    codes: tuple[int, ...]
    plan_node: int | None
    """The node the progress head takes the lane to be writing; None where it has no node."""


@dataclass(frozen=True)
class Barrier:
    """All notes of a block have been committed together."""

    block: int
    notes: tuple[Note, ...]
    may_read: tuple[tuple[bool, ...], ...]
    """Per reading lane, whose notes it may read from now on."""


@dataclass(frozen=True)
class Intervened:
    """Someone has put further edits in force, between a barrier and the block after it."""

    document: int
    block: int
    """The first block that is written under them."""
    lane_at_position: tuple[int, ...]
    valid_nodes: tuple[tuple[int, ...], ...]
    may_read: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class LaneFinished:
    """A lane has ended; it stays a masked row."""

    document: int
    lane: int
    reason: FinishReason
    tokens: int
    text: str
    """What was still held back of its text."""


@dataclass(frozen=True)
class Section:
    """What one lane wrote."""

    lane: int
    text: str
    tokens: tuple[int, ...]
    reason: FinishReason


@dataclass(frozen=True)
class DocumentResult:
    """The sections of one document in the order its reader sees them."""

    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(section.text.strip() for section in self.sections)

    @property
    def lane_at_position(self) -> tuple[int, ...]:
        return tuple(section.lane for section in self.sections)


@dataclass(frozen=True)
class Done:
    """Every lane has ended."""

    documents: tuple[DocumentResult, ...]
    ledger: Ledger


Event = PlanReady | Round | Barrier | Intervened | LaneFinished | Done


def as_json(event: Event) -> dict[str, Any]:
    """An event as one JSON object, named by its kind."""
    body = asdict(event)
    if isinstance(event, Done):
        body["documents"] = [
            {"text": result.text, "lane_at_position": result.lane_at_position, **asdict(result)}
            for result in event.documents
        ]
        body["ledger"] = event.ledger.as_json()
    return {"event": _KINDS[type(event)], **body}


_KINDS = {
    PlanReady: "plan",
    Round: "round",
    Barrier: "barrier",
    Intervened: "intervened",
    LaneFinished: "lane_finished",
    Done: "done",
}
