"""The exact screen for real prose: a sentence says a fact when its words and values are the fact's.

Meaning is not read. A paraphrase is missed, and that is the safe side for recall; leakage is judged
more widely than statement, which is the safe side there.

Paper: §7.2 (a screen beside the NLI cross-encoder).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.sentences.asides import without_asides
from pdt.sentences.support import share_of, written_sentences
from pdt.sentences.words import Said, said

SAYS, SPEAKS_OF = 0.8, 0.6
"""The share of a fact's content words in a sentence that says it, or that speaks of it."""


class ProseScreen:
    """Judges documents whose facts are sentences of their source."""

    name: ClassVar[str] = "prose"
    calibrated: ClassVar[bool] = False
    calibration = None

    @classmethod
    def opened(cls, choice: ScreenChoice) -> "ProseScreen | None":
        return cls() if choice.name == cls.name else None

    def judge(self, document: HeldOutDocument, lanes: Sequence[str]) -> LaneFacts:
        """Which facts each physical lane states or mentions, and which falsehoods."""
        told = [_told(text) for text in lanes]
        facts = [said(fact.statement) for fact in document.facts]
        nearest = [[_nearest(sentence, facts) for sentence in lane] for lane in told]
        stated, mentioned, false, altered = [], [], [], []
        for number, fact in enumerate(document.facts):
            claim, negative = facts[number], said(fact.hard_negative)
            says = [[_says(sentence, claim) for sentence in lane] for lane in told]
            lies = [[_says(sentence, negative) for sentence in lane] for lane in told]
            speaks = [
                [
                    near == number and share_of(claim, sentence.words) >= SPEAKS_OF
                    for sentence, near in zip(lane, places, strict=True)
                ]
                for lane, places in zip(told, nearest, strict=True)
            ]
            stated.append([any(lane) for lane in says])
            mentioned.append([any(a) or any(b) for a, b in zip(says, speaks, strict=True)])
            false.append([any(lane) for lane in lies])
            altered.append(
                [
                    any(near and not said_so for near, said_so in zip(a, b, strict=True))
                    for a, b in zip(speaks, says, strict=True)
                ]
            )
        return LaneFacts.of_facts(stated, mentioned, false, altered)


@dataclass(frozen=True)
class _Told:
    """A written sentence: what it says itself, and with the subject it takes over from before."""

    own: Said
    words: frozenset[str]


def _told(text: str) -> list[_Told]:
    found: list[_Told] = []
    before: frozenset[str] = frozenset()
    for sentence in written_sentences(text):
        own = said(without_asides(sentence))
        words = own.words | before if own.opens_with_pronoun else own.words
        found.append(_Told(own, words))
        if not own.opens_with_pronoun:
            before = own.values
    return found


def _says(sentence: _Told, claim: Said) -> bool:
    """All values of the claim and no other, and most of the words of both."""
    return (
        claim.values <= sentence.words
        and sentence.own.values <= claim.words
        and share_of(claim, sentence.words) >= SAYS
        and share_of(sentence.own, claim.words) >= SAYS
    )


def _nearest(sentence: _Told, facts: Sequence[Said]) -> int | None:
    """The fact whose words the sentence shares most; None where it shares none."""
    shares = [share_of(fact, sentence.words) + share_of(sentence.own, fact.words) for fact in facts]
    best = max(shares, default=0.0)
    return shares.index(best) if best else None
