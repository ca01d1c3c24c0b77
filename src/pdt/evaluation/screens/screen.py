"""What a screen is: it decides which facts stand in a lane.

Paper: §7.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.screens.calibration import Calibration


@dataclass(frozen=True)
class ScreenChoice:
    """Which screens are asked for."""

    name: str = "exact"
    """The one whose judgments the tables use."""
    encoder: str | None = None
    """A cross-encoder to screen with too."""
    calibration: Path | None = None
    """Its frozen threshold."""


class Screen(Protocol):
    """One way to decide which facts a lane holds."""

    name: ClassVar[str]
    calibrated: ClassVar[bool]
    """It judges by a model with a frozen threshold; without one, texts alone give its judgments."""

    @property
    def calibration(self) -> Calibration | None:
        """That threshold, and the documents it has seen."""
        ...

    @classmethod
    def opened(cls, choice: ScreenChoice) -> "Screen | None":
        """Ready to judge, or None where nobody asked for it."""
        ...

    def judge(self, document: HeldOutDocument, lanes: Sequence[str]) -> LaneFacts:
        """Which facts each physical lane states or mentions, and which falsehoods."""
        ...
