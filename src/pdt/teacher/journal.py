"""Answered calls on disk: a reply is written and synced before anything else is done with it.

One file a call, `ab/abcd….json`, named by the call's key: nothing to lock, nothing to lose, and the
same directory is what a replay reads. A killed run finds every reply that it paid for.

Paper: §4.2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pdt.contract import Contract, Sha256, parse_contract
from pdt.errors import CorruptFile
from pdt.provenance import write_json
from pdt.teacher.call import Call, NotAnswered, Reply


class Transcript(Contract):
    """A call with its reply."""

    schema_version: Literal["pdt.call/1"] = "pdt.call/1"
    """The version of this contract."""
    key: Sha256
    """The call's key, which is also the file's name."""
    call: Call
    """What was asked."""
    reply: Reply
    """What was answered."""


class Journal:
    """A directory of answered calls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get(self, call: Call) -> Reply | None:
        """The reply to exactly this call, if it was ever answered."""
        path = self.path(call.key)
        return self._read(path).reply if path.exists() else None

    def put(self, call: Call, reply: Reply) -> None:
        path = self.path(call.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        transcript = Transcript(key=call.key, call=call, reply=reply)
        write_json(path, transcript.model_dump(mode="json"))

    def cost(self, key: str) -> float | None:
        """What the reply to a call cost, by the call's key."""
        path = self.path(key)
        return self._read(path).reply.cost if path.exists() else None

    def path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.json"

    def transcripts(self) -> Iterator[Transcript]:
        """Every answered call, in the order of the keys."""
        for path in sorted(self.directory.glob("[0-9a-f][0-9a-f]/*.json")):
            yield self._read(path)

    def _read(self, path: Path) -> Transcript:
        transcript = parse_contract(
            Transcript, path.read_bytes(), where=str(path), remedy="Take the recorded call again."
        )
        if transcript.key != path.stem or transcript.call.key != path.stem:
            raise CorruptFile(
                f"{path} holds another call than its name says.\n"
                "A recorded call was changed. Take it again, or remove it to ask once more."
            )
        return transcript


class Replay:
    """Answers from the journal alone; a call that was never answered is refused."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def complete(self, call: Call) -> Reply:
        reply = self.journal.get(call)
        if reply is None:
            raise NotAnswered(call)
        return reply
