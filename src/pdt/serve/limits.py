"""How much one server takes on; every number can be set with `pdt serve --set`."""

from typing import Annotated

from pydantic import Field

from pdt.config import Count, Strict
from pdt.config.node import Seconds


class Limits(Strict):
    """Limits of one process."""

    documents: Count = 16
    """Documents that are written at once."""
    waiting: Annotated[int, Field(ge=0)] = 64
    """Documents that wait for a place; one more is refused."""
    share: Count = 48
    """Documents that one key may have under way, waiting ones included."""
    max_tokens: Count = 2000
    """New tokens a lane may be asked for."""
    seconds: Seconds = 600
    """Time from a document's turn to its end; then it is interrupted. A pause does not count."""
    pause_seconds: Seconds = 900
    """Time a document may wait at a barrier for a hand."""
    body_bytes: Count = 4 << 20
    connections: Count = 512
    kept: Count = 200
    """Documents whose events are kept after their end, the oldest forgotten first."""
    kept_events: Count = 200_000
    """Events of all of them together."""
