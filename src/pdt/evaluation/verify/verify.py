"""Verify a result directory: every file, line, judgment that can be made again, and number.

Digests find a changed file. Beyond them, everything that follows from the settings and from the raw
lines is derived again, so that a directory whose manifest was rewritten to fit is found too. What
only the corpus, the checkpoints or an NLI model could show is taken as it is, and said.

Paper: §7.2, Table 3.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pdt.evaluation.lines.raw import JUDGMENTS
from pdt.evaluation.measures.bootstrap import Measure
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.evidence_gates import had_by, judge_gates
from pdt.evaluation.report.results import RESULTS, Results
from pdt.evaluation.report.write import renderings
from pdt.evaluation.screens.calibration import check_disjoint
from pdt.evaluation.screens.judge import judge
from pdt.evaluation.screens.registry import SCREENS, open_screens
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.evaluation.verify.line_checks import check_lines, check_texts
from pdt.evaluation.verify.stored_run import StoredRun, changed, read_stored_run
from pdt.tokenizer import packaged_tokenizer


@dataclass(frozen=True)
class Verified:
    """A result directory in which nothing was found changed."""

    results: Results
    judged_again: int
    taken: tuple[str, ...]
    """For the reader: what was taken as it is, since the directory alone cannot show it."""


def verify_results(directory: Path) -> Verified:
    """What was verified; the first difference is refused."""
    run = read_stored_run(directory)
    check_lines(run)
    if run.calibration is not None:
        check_disjoint(run.calibration, run.raw.documents)
    tokenizer = packaged_tokenizer(run.corpus.records.tokenizer)
    if tokenizer is not None:
        check_texts(run, tokenizer)
    judged = _judge_again(run)
    _compare(run, compute_measures(run.raw, run.results.settings))
    for name, text in renderings(run.results, run.raw).items():
        if (directory / name).read_bytes() != text.encode():
            raise changed(directory / name, "does not show the stored numbers")
    return Verified(run.results, judged, tuple(_taken(run, texts=tokenizer is None)))


def _taken(run: StoredRun, *, texts: bool) -> list[str]:
    judged_by = Counter(row.screen for row in run.raw.judgments)
    lines = [
        f"{judged_by[kind.name]} judgments of the screen {kind.name} were taken as they are: "
        "making them again needs its model."
        for kind in SCREENS
        if kind.calibrated and judged_by[kind.name]
    ]
    if texts:
        lines.append(
            "The texts were taken as they are: the tokenizer "
            f"{run.corpus.records.tokenizer.name!r} of their tokens is not in the package."
        )
    return lines


def _judge_again(run: StoredRun) -> int:
    """A screen without a model needs nothing but the texts: its judgments are made again."""
    found, again = run.raw.judgments, 0
    for kind in SCREENS:
        numbers = [number for number, row in enumerate(found) if row.screen == kind.name]
        if kind.calibrated or not numbers:
            continue
        screens = open_screens(ScreenChoice(kind.name))
        made = {
            (row.condition, row.record_id): row.judged
            for row in judge(screens, run.raw, run.results.settings)
        }
        for number in numbers:
            key = (found[number].condition, found[number].record_id)
            if made[key] != found[number].judged:
                what = f"line {number + 1} ({' '.join(key)}) is not what the texts say"
                raise changed(run.directory / JUDGMENTS, what)
        again += len(numbers)
    return again


def _compare(run: StoredRun, computed: Mapping[str, Measure]) -> None:
    stored, path = run.results, run.directory / RESULTS
    for name in sorted({*stored.measures, *computed}):
        ours, theirs = stored.measures.get(name), computed.get(name)
        if ours is None or theirs is None or not ours.near(theirs):
            raise changed(path, f"{name} is {ours}; the stored lines give {theirs}")
    if judge_gates(stored.measures, had_by(run.raw.documents)) != stored.gates:
        raise changed(path, "the gates do not follow from the measures")
