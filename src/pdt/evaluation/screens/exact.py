"""The exact screen for Chronicle: it knows every way a fact can be said, so it is never in doubt.

Paper: §7.2 (a screen beside the NLI cross-encoder, for a corpus whose world state is known).
"""

from collections.abc import Sequence
from typing import ClassVar

from pdt.chronicle.claims import read_claim
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.screens.screen import ScreenChoice


class ExactScreen:
    """Judges Chronicle documents."""

    name: ClassVar[str] = "exact"
    calibrated: ClassVar[bool] = False
    calibration = None

    @classmethod
    def opened(cls, choice: ScreenChoice) -> "ExactScreen | None":
        return cls() if choice.name == cls.name else None

    def judge(self, document: HeldOutDocument, lanes: Sequence[str]) -> LaneFacts:
        """Which facts each physical lane states or mentions, and which falsehoods."""
        texts = [" ".join(text.split()) for text in lanes]
        stated, mentioned, false, altered = [], [], [], []
        for fact in document.facts:
            claim = read_claim(document.category, fact.statement)
            negative = read_claim(document.category, fact.hard_negative)
            says, names, lies = claim.stated(), claim.mentioned(), negative.stated()
            other = claim.any_value()
            stated.append([bool(says.search(text)) for text in texts])
            mentioned.append([bool(names.search(text)) for text in texts])
            false.append([bool(lies.search(text)) for text in texts])
            altered.append(
                [
                    any(m[1].casefold() != claim.value.casefold() for m in other.finditer(text))
                    for text in texts
                ]
            )
        return LaneFacts.of_facts(stated, mentioned, false, altered)
