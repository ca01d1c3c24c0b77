"""A run as it goes: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pdt.config import TrainingConfig
from pdt.training.curriculum import stages_of
from pdt.training.watch.metrics import EVALUATION, PLANS_APART, Metrics, Watch, losses_of
from pdt.training.watch.pace import Pace, spoken

EVERY = 5.0
"""Seconds between two plain lines."""


class ProgressView:
    """Takes lines of metrics; draws itself at whatever width the terminal has."""

    def __init__(self, config: TrainingConfig, before: list[Metrics]) -> None:
        self.pace = Pace(config)
        self._stages, self._steps = stages_of(config), config.scaled(config.steps)
        self._line: Metrics | None = None
        self._measured: Metrics | None = None
        for line in before:  # a resumed run knows its speed from the start
            self.take(line)

    def take(self, line: Metrics) -> None:
        self.pace.take(line)
        if line["kind"] == EVALUATION:
            self._measured = line
        else:
            self._line = line

    def where(self) -> str:
        """Stage, its plan source, and the step."""
        done = self.pace.step
        number = 0 if self._line is None else self._line["stage"]
        plan = self._stages[number].plan.value
        last = len(self._stages) - 1
        return f"stage {number} of 0–{last} · {plan} plans · step {done:,} of {self._steps:,}"

    def speed(self) -> str:
        pace = self.pace
        parts = []
        if pace.tokens_per_second is not None:
            parts.append(f"{pace.tokens_per_second:,.0f} tokens/s")
        if pace.documents_per_second is not None:
            parts.append(f"{pace.documents_per_second:,.1f} documents/s")
        if pace.seconds_left is not None:
            most = "" if pace.knows_every_stage else "at most "
            parts.append(f"{most}{spoken(pace.seconds_left)} left")
        return " · ".join(parts)

    def losses(self) -> str:
        return "" if self._line is None else loss_text(self._line)

    def measured(self) -> str:
        return "" if self._measured is None else evaluation_text(self._measured)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Table.grid(expand=True, padding=(0, 1))
        head.add_column(no_wrap=True)
        head.add_column(ratio=1, min_width=8)
        bar = ProgressBar(total=self._steps, completed=self.pace.step)
        head.add_row(Text(self.where(), style="bold"), bar)
        rows = ((self.speed(), "cyan"), (self.losses(), ""), (self.measured(), "green"))
        width = options.max_width
        yield Group(head, *(Text(_filled(said, width), style) for said, style in rows if said))


@contextmanager
def watched(
    config: TrainingConfig, before: list[Metrics], until: int, console: Console
) -> Iterator[Watch]:
    """A bar while the block runs when `console` is a terminal; else a line now and then."""
    view = ProgressView(config, before)
    if console.is_terminal:
        with Live(view, console=console, refresh_per_second=4) as live:

            def draw(line: Metrics) -> None:
                view.take(line)
                live.update(view)

            yield draw
        return
    borders = {stage.stop_step for stage in stages_of(config)} | {until}
    due = 0.0

    def write(line: Metrics) -> None:
        nonlocal due
        view.take(line)
        if line["kind"] == EVALUATION:
            _plain(console, view.measured())
        elif time.monotonic() >= due or view.pace.step in borders:
            due = time.monotonic() + EVERY
            _plain(console, f"{view.where()} · {view.speed()} · {view.losses()}")

    yield write


def loss_text(line: Metrics) -> str:
    """The losses of a line, as short as they can be said."""
    return "  ".join(f"{name} {value:.4g}" for name, value in losses_of(line).items())


def evaluation_text(line: Metrics) -> str:
    """One evaluation in a line."""
    count = line["documents"]
    return (
        f"held out after stage {line['stage']}, {count:,} document{'s' * (count != 1)}, "
        f"{line['plan_source']} plans: {loss_text(line)}{_apart(line)}"
    )


def _apart(line: Metrics) -> str:
    return f"  learned plans apart {line[PLANS_APART]:.0%}" if PLANS_APART in line else ""


def _filled(said: str, width: int) -> str:
    """Over as many lines as a narrow terminal needs, each name with its number; none is cut off."""
    lines = [""]
    for piece in said.split("  "):
        longer = f"{lines[-1]}  {piece}" if lines[-1] else piece
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return "\n".join(lines)


def _plain(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
