"""The live view: one column a lane, its plan node, its last note, and the words as they come."""

import time
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pdt.generation.events import Barrier, Event, LaneFinished, PlanReady, Round

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


class LiveView:
    """Takes events of one document; draws itself at whatever width the terminal has."""

    def __init__(self, lanes: int, title: str, interventions: Sequence[str] = ()) -> None:
        self._title = title
        self._interventions = tuple(interventions)
        self._text = [""] * lanes
        self._tokens = [0] * lanes
        self._state = ["waiting for the plan"] * lanes
        self._note = [""] * lanes
        self._nodes: tuple[tuple[int, ...], ...] = ()
        self._position = [0] * lanes
        self._rounds = self._block = 0
        self._started: float | None = None

    def take(self, event: Event) -> None:
        match event:
            case PlanReady():
                self._nodes = event.valid_nodes
                for position, lane in enumerate(event.lane_at_position):
                    self._position[lane] = position
                self._state = [f"{len(nodes)} plan nodes" for nodes in event.valid_nodes]
                self._started = time.perf_counter()
            case Round():
                self._rounds = event.index + 1
                for taken in event.lanes:
                    self._text[taken.lane] += taken.text
                    self._tokens[taken.lane] += 1
            case Barrier():
                self._block = event.block + 1
                self._note = ["–"] * len(self._note)
                for note in event.notes:
                    if note.plan_node is not None:
                        at = self._nodes[note.lane].index(note.plan_node) + 1
                        self._state[note.lane] = f"plan node {at} of {len(self._nodes[note.lane])}"
                    self._note[note.lane] = " ".join(f"{code:02x}" for code in note.codes)
            case LaneFinished():
                self._text[event.lane] += event.text
                self._state[event.lane] = f"ended ({event.reason})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = max(6, min((options.height or console.size.height) - 5, 24))
        grid = Table.grid(expand=True, padding=(0, 0))
        for _ in self._text:
            grid.add_column(ratio=1)
        width = options.max_width // len(self._text) - 4
        grid.add_row(*(self._lane(lane, width, height) for lane in range(len(self._text))))
        yield Group(grid, self._footer())

    def _lane(self, lane: int, width: int, height: int) -> Panel:
        colour = COLOURS[lane % len(COLOURS)]
        head = Text(self._state[lane], style=colour, no_wrap=True, overflow="ellipsis")
        note = Text("note ", style="dim", no_wrap=True, overflow="ellipsis")
        note.append(self._note[lane] or "none yet", style="bold" if self._note[lane] else "dim")
        rows = height - 4
        lines = Text(self._text[lane]).wrap(Console(width=width), width)
        body = Text("\n").join(list(lines)[-rows:])
        return Panel(
            Group(head, note, Text("─" * width, style="dim"), body),
            title=f"lane {lane} → section {self._position[lane] + 1}",
            title_align="left",
            border_style=colour,
            height=height + 2,
        )

    def _footer(self) -> Text:
        elapsed = time.perf_counter() - self._started if self._started else 0.0
        speed = sum(self._tokens) / elapsed if elapsed > 0 else 0.0
        parts = [
            self._title,
            f"round {self._rounds}",
            f"block {self._block}",
            f"{sum(self._tokens)} tokens",
            f"{speed:.0f} tokens/s",
            *(f"intervention {text}" for text in self._interventions),
        ]
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")
