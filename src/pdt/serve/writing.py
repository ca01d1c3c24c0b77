"""One document that is written for a client: what was asked, where it stands, what was said."""

import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from pdt.generation.events import Done, PlanReady, as_json
from pdt.generation.events import Event as GenerationEvent
from pdt.generation.in_range import signs_out_of_range
from pdt.generation.interventions import Intervention, parse_intervention
from pdt.generation.loop import Generation
from pdt.generation.replay import differences
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import Trace
from pdt.serve.log import EventLog


class Status(StrEnum):
    """Where a document stands."""

    WAITING = "waiting"
    READING = "reading"
    WRITING = "writing"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True)
class Stood:
    """The document stands elsewhere now."""

    status: Status
    detail: str = ""
    block: int | None = None
    """The block that would be written next, where it waits at a barrier."""


@dataclass(frozen=True)
class Edited:
    """Edits that a hand has put in, in the words they were asked for."""

    interventions: tuple[str, ...]
    block: int


@dataclass(frozen=True)
class Failed:
    """It cannot go on."""

    message: str
    code: str


Event = GenerationEvent | Stood | Edited | Failed


@dataclass(frozen=True)
class Asked:
    """What a client wants written."""

    source: str
    request: str
    settings: GenerationSettings
    interventions: tuple[str, ...] = ()
    branch_of: tuple[str, int] | None = None
    """The document it continues another way, and the first block it writes anew."""
    replay_of: str | None = None
    """The document it writes again, as that one was written."""


@dataclass(eq=False)
class Writing:
    """Shared by the two threads: each field says who sets it."""

    asked: Asked
    holder: str
    id: str = field(default_factory=lambda: f"gen_{secrets.token_urlsafe(18)}")
    created: float = field(default_factory=time.time)
    log: EventLog[Event] = field(default_factory=EventLog)
    status: Status = Status.WAITING
    """Set by the engine."""
    generation: Generation | None = None
    """Set once, before it waits for its turn."""
    done: Done | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by anyone: end at the next round."""
    pause_at: bool = False
    """Set by the connections: wait at the next barrier."""
    resume: bool = False
    edits: deque[tuple[str, ...]] = field(default_factory=deque)
    """Put in by the connections, taken out by the engine at a barrier."""
    late: bool = False
    """The time limit ended it. Set by the engine."""
    replayed: Trace | None = None
    """What a replay has to come out as. Set once, before it waits for its turn."""
    _signs: list[str] | None = None
    _differences: list[str] | None = None

    def signs(self) -> list[str]:
        """Signs that the text is none the model can write about, as `pdt generate` tells them."""
        if self.done is None or self.generation is None:
            return []
        if self._signs is not None:
            return self._signs
        own = [e for e in self.log.entries if isinstance(e, PlanReady)]
        config, tokens = self.generation.model.config, len(self.generation.prompts[0])
        result = self.done.documents[0]
        self._signs = signs_out_of_range(config, self.asked.source, tokens, result, own)
        return self._signs

    def differences(self) -> list[str] | None:
        """Where a replay left what it replays; None while it has not come to its end."""
        if self.replayed is None or self.done is None or self.status is not Status.DONE:
            return None
        if self._differences is None:
            assert self.generation is not None
            digest = self.replayed.model_digest
            self._differences = differences(self.replayed, self.generation, digest)
        return self._differences

    @property
    def ended(self) -> bool:
        return self.log.ended

    def interventions(self) -> tuple[str, ...]:
        """Those asked for at the start, and those put in since."""
        later = (event.interventions for event in self.log.entries if isinstance(event, Edited))
        return (*self.asked.interventions, *(text for texts in later for text in texts))

    def as_json(self) -> dict[str, Any]:
        """The document as the native interface shows it."""
        branch = self.asked.branch_of
        body: dict[str, Any] = {
            "id": self.id,
            "object": "pdt.generation",
            "created": int(self.created),
            "status": self.status,
            "request": self.asked.request,
            "settings": self.asked.settings.model_dump(mode="json"),
            "interventions": self.interventions(),
            "branch_of": None if branch is None else {"id": branch[0], "block": branch[1]},
            "replay_of": None,
            "events": len(self.log.entries),
        }
        if self.asked.replay_of is not None:
            body["replay_of"] = {"id": self.asked.replay_of, "differences": self.differences()}
        if self.done is not None:
            body |= {key: value for key, value in as_json(self.done).items() if key != "event"}
            body["signs_out_of_range"] = self.signs()
        return body


def event_json(event: Event) -> dict[str, Any]:
    """An event of the server or of the generation as one JSON object."""
    match event:
        case Stood():
            return {"event": "status", **asdict(event)}
        case Edited():
            return {"event": "edited", **asdict(event)}
        case Failed():
            return {"event": "failed", **asdict(event)}
        case _:
            return as_json(event)


def parse_all(texts: Sequence[str]) -> list[Intervention]:
    return [parse_intervention(text) for text in texts]
