"""The one thread in which the model runs: it takes documents in, runs shared rounds, and lets go.

Connections never wait for it. They put documents and wishes down; it looks at them between two
rounds, writes what happens into each document's log, and rings once a round.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pdt.errors import PdtError
from pdt.generation.events import Barrier, Done, FinishReason, PlanReady, Round
from pdt.generation.pack import Pack
from pdt.generation.trace import model_digest
from pdt.generation.writer import Writer
from pdt.serve.kept import Kept
from pdt.serve.limits import Limits
from pdt.serve.metrics import Metrics
from pdt.serve.places import Places
from pdt.serve.writing import Edited, Event, Failed, Status, Stood, Writing, parse_all

IDLE = 0.25
"""Seconds between two looks at clocks while nothing runs."""

log = logging.getLogger("pdt.serve")


@dataclass
class _Turn:
    """A document that has its place in the pack."""

    writing: Writing
    began: float
    paused_at: float | None = None
    paused_for: float = 0.0


class Engine:
    """Loads the model, then writes until it is closed."""

    def __init__(self, load: Callable[[], Writer], limits: Limits) -> None:
        self.limits, self.metrics = limits, Metrics()
        self.places, self.kept = Places(limits), Kept(limits)
        self.writer: Writer | None = None
        self.digest = ""
        self.error: BaseException | None = None
        """Why the model could not be loaded, or the thread ended."""
        self.on_failure: Callable[[], None] = lambda: None
        self._load = load
        self._ring = threading.Event()
        self._closing = False
        self._turns: dict[str, _Turn] = {}
        self._rung: set[Writing] = set()
        self._connections: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="pdt-engine", daemon=True)

    # Called by the connections' thread.

    @property
    def ready(self) -> bool:
        return self.writer is not None and self.error is None and not self.places.closed

    def start(self, connections: asyncio.AbstractEventLoop) -> None:
        self._connections = connections
        self._thread.start()

    def submit(self, writing: Writing) -> None:
        """Its place was reserved and its generation is ready to begin."""
        self.kept.add(writing)
        writing.log.add(Stood(Status.WAITING))
        self.places.wait(writing)
        self.nudge()

    def cancel(self, writing: Writing) -> None:
        """At once where it waits, else within a round."""
        writing.stop.set()
        if self.places.withdraw(writing):
            self._end(writing, Status.CANCELLED)
            writing.log.wake()
        self.nudge()

    def nudge(self) -> None:
        """There is something to look at."""
        self._ring.set()

    def drain(self) -> None:
        """Take nothing more in; what is under way goes on."""
        self.places.closed = True

    def close(self, seconds: float) -> None:
        """Let what is under way end, for so long; then interrupt it."""
        self.drain()
        end = time.monotonic() + seconds
        while self.places.under_way and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.02)
        for writing in iter(self.places.next, None):
            self._end(writing, Status.CANCELLED)
        self._closing = True
        self.nudge()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    # The engine's own thread.

    def _work(self) -> None:
        try:
            self.writer = self._load()
            self.digest = model_digest(self.writer.model)
            self._write(Pack(self.writer.model))
        except BaseException as error:
            if not isinstance(error, PdtError):  # a refusal is the command's to say
                log.exception("the engine has stopped")
            self.error = error
            self._give_up()
            self.on_failure()

    def _write(self, pack: Pack) -> None:
        while not (self._closing and not self._turns and not self.places.waiting):
            self._ring.clear()
            self._admit(pack)
            self._look_at_clocks()
            for turn in list(self._turns.values()):
                self._listen(pack, turn)
            self._round(pack)
            self._count()
            self._wake()
            if not any(turn.paused_at is None for turn in self._turns.values()):
                self._ring.wait(IDLE)

    def _admit(self, pack: Pack) -> None:
        """One document a round at most: reading a long prompt holds up all others."""
        if len(self._turns) >= self.limits.documents:
            return
        writing = self.places.next()
        if writing is None:
            return
        generation = writing.generation
        assert generation is not None
        self._turns[writing.id] = _Turn(writing, time.monotonic())
        tokens = len(generation.prompts[0])
        self.metrics.prompt_tokens.inc(tokens)
        self._stand(writing, Stood(Status.READING, f"reading {tokens} tokens"))
        self._wake()
        pack.join(writing.id, generation)

    def _listen(self, pack: Pack, turn: _Turn) -> None:
        """Take every event up to the next round, or to a barrier at which it is to wait."""
        writing = turn.writing
        if turn.paused_at is not None and not self._goes_on(turn):
            return
        try:
            while writing.id in pack and turn.paused_at is None:
                event = pack.next_event(writing.id)
                if event is None:
                    return
                self._take(turn, event)
        except Exception:
            log.exception("a document failed")
            pack.leave(writing.id)
            self._fail(writing)

    def _round(self, pack: Pack) -> None:
        names = [name for name, turn in self._turns.items() if turn.paused_at is None]
        names = [name for name in names if name in pack]
        if not names:
            return
        started = time.perf_counter()
        said = pack.round(names)
        self.metrics.rounds.inc()
        self.metrics.round.observe(time.perf_counter() - started)
        for name, event in said:
            if isinstance(event, Exception):
                log.error("a document failed", exc_info=event)
                self._fail(self._turns[name].writing)
            else:
                self._take(self._turns[name], event)

    def _take(self, turn: _Turn, event: Event) -> None:
        writing = turn.writing
        self._say(writing, event)
        match event:
            case PlanReady():
                self._stand(writing, Stood(Status.WRITING))
            case Round():
                self.metrics.tokens.inc(len(event.lanes))
                if event.index == 0:
                    self.metrics.first_token.observe(time.time() - writing.created)
            case Barrier():
                self._at_barrier(turn, event.block + 1)
            case Done():
                writing.done = event
                reasons = {section.reason for section in event.documents[0].sections}
                cut = FinishReason.INTERRUPTED in reasons and not writing.late
                self._end(writing, Status.CANCELLED if cut else Status.DONE)

    def _at_barrier(self, turn: _Turn, block: int) -> None:
        writing = turn.writing
        self._put_in(writing, block)
        if writing.pause_at and not writing.stop.is_set():
            writing.pause_at = writing.resume = False
            turn.paused_at = time.monotonic()
            self._stand(writing, Stood(Status.PAUSED, block=block))

    def _goes_on(self, turn: _Turn) -> bool:
        """Whether a document that waits at a barrier is told to go on; edits go in either way."""
        writing = turn.writing
        assert turn.paused_at is not None and writing.generation is not None
        self._put_in(writing, len(writing.generation.bus.blocks))
        if not writing.resume and not writing.stop.is_set():
            return False
        turn.paused_for += time.monotonic() - turn.paused_at
        turn.paused_at, writing.resume = None, False
        self._stand(writing, Stood(Status.WRITING))
        return True

    def _put_in(self, writing: Writing, block: int) -> None:
        assert writing.generation is not None
        while writing.edits:
            texts = writing.edits.popleft()
            writing.generation.intervene(parse_all(texts))
            self._say(writing, Edited(texts, block))

    def _look_at_clocks(self) -> None:
        now = time.monotonic()
        for turn in self._turns.values():
            if turn.paused_at is not None:
                over = now - turn.paused_at > self.limits.pause_seconds
            else:
                over = now - turn.began - turn.paused_for > self.limits.seconds
            if over and not turn.writing.stop.is_set():
                turn.writing.late = True
            if over or self._closing:
                turn.writing.stop.set()

    def _say(self, writing: Writing, event: Event) -> None:
        writing.log.add(event)
        self._rung.add(writing)

    def _stand(self, writing: Writing, stood: Stood) -> None:
        writing.status = stood.status
        self._say(writing, stood)

    def _fail(self, writing: Writing) -> None:
        # A client is told nothing of the inside.
        message = "The server failed at this document; its log says more."
        self._say(writing, Failed(message, "server_error"))
        self._end(writing, Status.FAILED)

    def _end(self, writing: Writing, status: Status) -> None:
        self._turns.pop(writing.id, None)
        self._stand(writing, Stood(status))
        writing.log.end()
        self.places.release(writing.holder)
        self.metrics.documents.labels(status).inc()
        self.metrics.document.observe(time.time() - writing.created)

    def _give_up(self) -> None:
        """Nobody waits for a thread that is gone."""
        self.places.closed = True
        waiting = iter(self.places.next, None)
        for writing in [turn.writing for turn in self._turns.values()] + list(waiting):
            self._fail(writing)
        self._wake()

    def _count(self) -> None:
        paused = sum(turn.paused_at is not None for turn in self._turns.values())
        self.metrics.writing.set(len(self._turns) - paused)
        self.metrics.paused.set(paused)
        self.metrics.waiting.set(self.places.waiting)

    def _wake(self) -> None:
        """Once a round, on the connections' thread."""
        rung, self._rung = self._rung, set()
        if rung and self._connections is not None and not self._connections.is_closed():
            self._connections.call_soon_threadsafe(_wake_all, rung)


def _wake_all(writings: Iterable[Writing]) -> None:
    for writing in writings:
        writing.log.wake()
