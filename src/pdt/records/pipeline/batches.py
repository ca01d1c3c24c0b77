"""Teaching through the server's batch interface, and what teaching would cost.

Both run the whole phase with a client that only remembers what it cannot answer: round after round
the batches answer what was missing, until nothing is.

Paper: §4.2.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from pdt.config import PdtConfig
from pdt.contract import Contract
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.parts import PartReport
from pdt.records.pipeline.teachers import open_budget, prompted
from pdt.records.pipeline.teaching import TeachingPhase
from pdt.teacher.batch import Batches, Waiting
from pdt.teacher.budget import cost_of, most_tokens
from pdt.teacher.call import Call
from pdt.teacher.endpoint import check_settings
from pdt.teacher.journal import Journal
from pdt.teacher.trouble import TeacherFailed
from pdt.terms import TeacherPass

BYTES_PER_TOKEN = 4
"""Of English prose and JSON, about."""
FACT_TOKENS = 130
"""Of one fact with its hard negative in a reply, about."""
PLAN_SHARE = 1.4
"""A composed answer over the prose alone: objectives, quotes, JSON."""


def teach_in_batches(
    build: Build, progress: Callable[[PartReport], None], say: Callable[[str], None]
) -> Sequence[PartReport]:
    """The whole phase, in rounds of batches."""
    phase, journal = TeachingPhase(build), Journal(build.calls_at)
    batches = Batches(build.calls_at / "batches", build.config.teacher, journal, open_budget(build))
    done: dict[int, PartReport] = {}
    while True:
        waiting = Waiting(journal)
        for index in range(phase.parts):
            if index in done:
                continue
            report = phase.report(index) or phase.run_with(
                prompted(build.config, waiting), index, wait=True
            )
            if report is not None:
                done[index] = report
                progress(report)
        if not waiting.pending:
            return [done[index] for index in sorted(done)]
        calls = list(waiting.pending.values())
        say(f"{len(calls)} calls go into batches")
        if not batches.answer(calls, say):
            raise TeacherFailed(
                f"The server answered none of {len(calls)} batched calls.\n"
                "Look at its batch interface; run again with --resume when it is well."
            )


class Estimate(Contract):
    """What teaching would cost, before a single call."""

    sources: int
    """Accepted sources."""
    answered: int
    """Those whose teaching is answered already, at no further cost."""
    calls: int
    """Calls if every first reply is good."""
    input_tokens: int
    """About, in those calls."""
    output_tokens: int
    """About, in those calls."""
    expected: float
    """About what they cost, without repairs."""
    at_most: float
    """If every reply is as long as it may be and every repair is needed."""
    budget: float | None
    """The limit that is set."""
    kind: Literal["estimate"] = "estimate"
    """Never a promise; the budget is."""


def estimate(build: Build) -> Estimate:
    """Ask nobody; count what would be asked."""
    check_settings(build.config.teacher)
    phase, journal = TeachingPhase(build), Journal(build.calls_at)
    waiting = Waiting(journal)
    teacher = prompted(build.config, waiting)
    sources = 0
    for index in range(phase.parts):
        sources += phase.sources_in(index)
        phase.run_with(teacher, index, wait=True)
    config, calls = build.config, list(waiting.pending.values())
    sent = received = count = 0
    worst = 0.0
    for call in calls:
        passes = _passes(call, config)
        sent += sum(tokens for tokens, _ in passes)
        received += sum(tokens for _, tokens in passes)
        count += len(passes)
        most_in, most_out = most_tokens(call, config.teacher.endpoint)
        tries = config.teacher.attempts * len(passes) - call.attempt
        # A repair sends the last reply again, and the broken rules.
        worst += tries * cost_of(config.teacher.endpoint, 2 * most_in + 4 * most_out, most_out)
    return Estimate(
        sources=sources,
        answered=sources - len(calls),
        calls=count,
        input_tokens=sent,
        output_tokens=received,
        expected=cost_of(config.teacher.endpoint, sent, received),
        at_most=worst,
        budget=config.teacher.budget,
    )


def _passes(call: Call, config: PdtConfig) -> list[tuple[int, int]]:
    """Tokens sent and received by this call and the pass that follows it."""
    limits = config.records.limits
    sent = most_tokens(call, config.teacher.endpoint)[0] // BYTES_PER_TOKEN
    facts = (limits.facts.min + limits.facts.max) // 2 * FACT_TOKENS
    prose = config.lanes.count * (limits.section_tokens.min + limits.section_tokens.max) // 2
    answer = (sent + facts, round(PLAN_SHARE * prose))
    if call.teacher_pass is TeacherPass.COMPOSE_ANSWER:
        return [(sent, answer[1])]
    return [(sent, facts), answer]
