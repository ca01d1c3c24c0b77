"""How fast a run is, and how long the rest of the curriculum will take.

Stages differ in speed (one trains the planner alone), so each has its own. A stage not reached yet
is taken to be as slow as the slowest so far.
"""

from collections import defaultdict, deque

from pdt.config import TrainingConfig
from pdt.training.curriculum import stages_of
from pdt.training.watch.metrics import STEP, Metrics

RECENT = 50
"""Steps that a speed is the mean of."""


class Pace:
    """Takes the lines of metrics one after another."""

    def __init__(self, config: TrainingConfig) -> None:
        self._stages = stages_of(config)
        self._recent: deque[Metrics] = deque(maxlen=RECENT)
        self._seconds: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self.step = 0
        """Steps taken."""

    def take(self, line: Metrics) -> None:
        if line["kind"] != STEP:
            return
        if self._recent and self._recent[-1]["stage"] != line["stage"]:
            self._recent.clear()
        self._recent.append(line)
        self._seconds[line["stage"]].append(line["seconds"])
        self.step = line["step"] + 1

    @property
    def tokens_per_second(self) -> float | None:
        """Prompt and section tokens that were really read."""
        return self._rate("prompt_tokens", "section_tokens")

    @property
    def documents_per_second(self) -> float | None:
        return self._rate("step_documents")

    @property
    def seconds_left(self) -> float | None:
        """To the end of the whole curriculum."""
        means = {stage: sum(taken) / len(taken) for stage, taken in self._seconds.items()}
        if not means:
            return None
        slowest = max(means.values())
        return sum(
            (stage.stop_step - max(stage.first_step, self.step)) * means.get(stage.number, slowest)
            for stage in self._stages
            if stage.stop_step > self.step
        )

    @property
    def knows_every_stage(self) -> bool:
        """Else the time left is too long where a faster stage is to come."""
        return all(s.number in self._seconds for s in self._stages if s.stop_step > self.step)

    def _rate(self, *names: str) -> float | None:
        seconds = sum(line["seconds"] for line in self._recent)
        amount = sum(line.get(name, 0) for name in names for line in self._recent)
        return amount / seconds if seconds > 0 else None


def spoken(seconds: float) -> str:
    """A length of time as a person would say it."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02d} min" if hours < 48 else f"{hours / 24:.1f} days"
