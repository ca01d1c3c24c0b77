"""The same answer with drafts and without, interleaved: rounds saved, and time.

Paper: not in the paper; the tokens are those of §3.6 either way.
"""

from dataclasses import dataclass
from pathlib import Path

from pdt.bench.timing import Timing, interleave, ratio
from pdt.config import load_config
from pdt.errors import UsageError
from pdt.generation.ledger import Ledger
from pdt.generation.row_costs import RowCosts, row_costs
from pdt.generation.settings import GenerationSettings
from pdt.generation.writer import Writer
from pdt.model.build import from_trunk

FIRST_WORDS = 12
"""Of a source, put behind it as a request: a model that goes on repeats the source."""


@dataclass(frozen=True)
class DraftsResult:
    """What one document measured."""

    prompt_tokens: int
    plain: Timing
    """Seconds from the first round to the last, the prompt's reading left out."""
    drafted: Timing
    plain_ledger: Ledger
    ledger: Ledger
    """With drafts."""
    costs: RowCosts

    @property
    def gain(self) -> tuple[float, float, float]:
        """How many times faster with drafts, with quartiles."""
        return ratio(self.plain, self.drafted)

    @property
    def rounds_saved(self) -> float:
        return self.plain_ledger.rounds / self.ledger.rounds


def bench_drafts(
    subject: str,
    source: str,
    request: str | None,
    *,
    gguf: Path | None,
    drafts: int,
    lane_tokens: int,
    repeats: int,
) -> DraftsResult:
    """A saved model or a pretrained trunk, whose untrained lanes are the trunk itself."""
    if gguf is None:
        writer = Writer.load(subject)
    else:
        writer = Writer(from_trunk(str(gguf), config=load_config(subject)))
    request = request or " ".join(source.split()[:FIRST_WORDS])
    plain = GenerationSettings(max_tokens=lane_tokens)
    found: dict[int, list[Ledger]] = {0: [], drafts: []}
    texts: set[str] = set()

    def answer(most: int) -> None:
        done = writer.generate(source, request, plain, drafts=most)
        found[most].append(done.ledger)
        texts.add(done.documents[0].text)

    interleave(
        {"plain": lambda: answer(0), "drafted": lambda: answer(drafts)}, repeats=repeats, warmup=1
    )
    if len(texts) != 1:
        raise UsageError("The texts differ with drafts and without: this is a fault of pdt.")
    return DraftsResult(
        prompt_tokens=len(writer.prompt(source, request)),
        plain=_writing_time(found[0][1:]),
        drafted=_writing_time(found[drafts][1:]),
        plain_ledger=found[0][-1],
        ledger=found[drafts][-1],
        costs=row_costs(writer.model),
    )


def _writing_time(ledgers: list[Ledger]) -> Timing:
    parts = ("decode", "sample", "barrier")
    return Timing(tuple(sum(run.seconds.get(part, 0.0) for part in parts) for run in ledgers))
