"""The judging step of an evaluation: every screen on the texts that are its own to judge.

Paper: §7.2.
"""

from collections.abc import Iterator, Sequence

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import Judgment
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.protocol.scope import judged_by
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.evaluation.screens.calibration import check_disjoint
from pdt.evaluation.screens.screen import Screen


def check_screens(
    screens: Sequence[Screen], documents: Sequence[HeldOutDocument], *, lanes: int
) -> None:
    """Refuse now what a screen could not read hours later, or was calibrated on."""
    for screen in screens:
        if screen.calibration is not None:
            check_disjoint(screen.calibration, documents)
        for document in documents:
            screen.judge(document, [""] * lanes)


def judge(screens: Sequence[Screen], raw: Raw, settings: EvaluationSettings) -> Iterator[Judgment]:
    """Every judgment of every screen, as it is made."""
    answered = raw.answered()
    for screen in screens:
        for written in judged_by(screen.name, settings, raw):
            yield Judgment(
                screen=screen.name,
                condition=written.condition,
                record_id=written.record_id,
                judged=screen.judge(answered(written), [lane.text for lane in written.lanes]),
            )
