"""Run the steps of a study side by side, one core each, and go on where a killed study stopped.

OUT/study.json          the recipe and its configuration; a directory belongs to one
OUT/logs/STEP.log       what each command said, and the command itself
"""

import heapq
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pdt.binding import bind
from pdt.config import load_config
from pdt.errors import PdtError, UsageError
from pdt.study.recipe import Recipe
from pdt.study.steps import Step
from pdt.training.watch.metrics import METRICS
from pdt.training.watch.pace import spoken

RECIPE = "study.json"
TEXTS = Path(".cache/texts")
"""Where `pdt corpus write` looks for what `pdt corpus take` took."""
EVERY = 1.0
"""Seconds between two looks at the running commands."""


def check_given(recipe: Recipe) -> None:
    """What a study takes from here must be here, before hours are spent on the rest."""
    texts = any(corpus.texts for corpus in recipe.corpora.values())
    wanted = ([Path(recipe.pretrained)] if recipe.pretrained else []) + ([TEXTS] if texts else [])
    missing = [str(path) for path in wanted if not path.exists()]
    if missing:
        raise UsageError(
            f"This study begins with {' and '.join(missing)}, and nothing is there.\n"
            "Run `make weights texts`, and the study from the directory that holds .cache."
        )


def bind_study(recipe: Recipe, out: Path) -> None:
    """One directory, one recipe: half of each would be a study of nothing."""
    config = load_config(recipe.preset, overrides=recipe.settings)
    tree = recipe.model_dump(mode="json") | {"config": config.model_dump(mode="json")}
    file = out / RECIPE
    if not file.is_file() and out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} exists and holds no study.\nChoose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    bind(
        file,
        tree,
        f"{out} holds a study of another recipe.",
        "Choose another --out, or run the version of pdt that began it.",
    )


@dataclass
class _Running:
    step: Step
    process: "subprocess.Popen[bytes]"
    log: Path
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun


class Study:
    """The steps, which of them run, and how long the rest will take."""

    def __init__(self, steps: Sequence[Step], out: Path, workers: int) -> None:
        self.steps, self.out, self.workers = steps, out, workers
        self.running: list[_Running] = []
        self._paid = self._expected = 0.0

    def run(self, console: Console) -> None:
        """Every step that is not done; the first failure stops all, and names its log."""
        (self.out / "logs").mkdir(exist_ok=True)
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            with Live(self, console=console, refresh_per_second=2, transient=True):
                while not all(step.done for step in self.steps) or self.running:
                    self._start_ready()
                    time.sleep(EVERY)
                    for ended in [r for r in self.running if r.process.poll() is not None]:
                        self._end(ended, console)
        finally:
            signal.signal(signal.SIGTERM, before)
            for left in self.running:  # stopped or failed: each goes on from its last checkpoint
                left.process.terminate()
            for left in self.running:
                left.process.wait()

    @property
    def seconds_left(self) -> float:
        """By the build machine's times, corrected by how this machine did so far."""
        pace = self._paid / self._expected if self._expected else 1.0
        busy = {r.step.name: r.seconds for r in self.running}
        waiting = [step for step in self.steps if not step.done]
        done = {step.name for step in self.steps if step.done}
        clock, ends = 0.0, list[tuple[float, str]]()
        while waiting or ends:  # the same order in which the steps will be started
            for step in [s for s in waiting if done.issuperset(s.after)]:
                if len(ends) < self.workers:
                    waiting.remove(step)
                    left = max(step.seconds * pace - busy.get(step.name, 0.0), 0.0)
                    heapq.heappush(ends, (clock + left, step.name))
            clock, name = heapq.heappop(ends)
            done.add(name)
        return clock

    def _start_ready(self) -> None:
        done = {step.name for step in self.steps if step.done}
        busy = {running.step.name for running in self.running}
        for step in self.steps:
            if len(self.running) == self.workers:
                return
            if step.name not in done | busy and done.issuperset(step.after):
                self.running.append(self._start(step))

    def _start(self, step: Step) -> _Running:
        log = self.out / "logs" / f"{step.name.replace(' ', '-')}.log"
        arguments = step.arguments()
        command = [sys.executable, "-m", "pdt", *arguments]
        with log.open("ab") as file:
            file.write(f"$ pdt {' '.join(arguments)}\n".encode())
            file.flush()
            process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # One thread each: two runs side by side are faster than one with two threads.
                env={**os.environ, "OMP_NUM_THREADS": str(self.workers if step.alone else 1)},
            )
        return _Running(step, process, log)

    def _end(self, ended: _Running, console: Console) -> None:
        self.running.remove(ended)
        step, code = ended.step, ended.process.returncode
        if code not in step.exits or not step.done:
            tail = ended.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
            raise PdtError(
                "\n".join(
                    [
                        f"The step {step.name!r} failed with exit code {code}.",
                        *(f"  {line}" for line in tail),
                        f"Its whole log is {ended.log}. The same command goes on from here.",
                    ]
                )
            )
        self._paid += ended.seconds
        self._expected += step.seconds
        console.print(f"{step.name}: {spoken(ended.seconds)}", highlight=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = sum(step.seconds for step in self.steps)
        done = sum(step.seconds for step in self.steps if step.done)
        count = sum(step.done for step in self.steps)
        head = Table.grid(expand=True, padding=(0, 1))
        head.add_column(no_wrap=True)
        head.add_column(ratio=1, min_width=8)
        left = f"about {spoken(self.seconds_left)} left"
        head.add_row(
            Text(f"{count} of {len(self.steps)} steps · {left}", style="bold"),
            ProgressBar(total=whole, completed=done),
        )
        lines = (
            Text(f"  {r.step.name} · {spoken(r.seconds)}{_steps(r.step)}", no_wrap=True)
            for r in self.running
        )
        yield Group(head, *lines)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A stopped study must not leave its commands behind."""
    raise KeyboardInterrupt


def _steps(step: Step) -> str:
    """How far a training run is: a line of its metrics is a step."""
    if step.work is None or not (step.work / METRICS).is_file():
        return ""
    with (step.work / METRICS).open("rb") as file:
        taken = sum(1 for _ in file)
    return f" · step {taken:,} of {int(step.result.name.removeprefix('step-')):,}"
