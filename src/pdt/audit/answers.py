"""What a person can say of a claim and a text, who says it, and for what.

Paper: §7.2.
"""

from enum import StrEnum

from pdt.errors import AuditRefused


class Answer(StrEnum):
    """Is the claim stated by this text?"""

    YES = "yes"
    NO = "no"
    CONTRADICTED = "contradicted"
    CANNOT_TELL = "cannot tell"


POINTS = frozenset({Answer.YES, Answer.CONTRADICTED})
"""Answers that mark the sentence they rest on."""
LONGEST_REMARK = 500


class Role(StrEnum):
    """What an account may do; one person may be an annotator and an adjudicator of other items."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    OPERATOR = "operator"


class Purpose(StrEnum):
    """Why a person is shown something."""

    TRAINING = "training"
    """An example whose answer is known."""
    JUDGMENT = "judgment"
    REPEAT = "repeat"
    """An item that the same person has judged before; it counts for self-agreement alone."""
    ADJUDICATION = "adjudication"


def checked_answer(
    answer: str, sentence: int | None, remark: str, *, sentences: int
) -> tuple[Answer, int | None, str]:
    """An answer from outside, or a refusal that says what is missing."""
    try:
        said = Answer(answer)
    except ValueError:
        known = ", ".join(Answer)
        raise AuditRefused(f"{answer[:40]!r} is no answer. Give one of: {known}.") from None
    if said in POINTS:
        if sentence is None or not 0 <= sentence < sentences:
            raise AuditRefused(
                f"The answer {said} marks the sentence it rests on: one of 1 to {sentences}."
            )
    elif sentence is not None:
        raise AuditRefused(f"The answer {said} rests on no sentence. Leave the mark out.")
    remark = " ".join(remark.split())
    if len(remark) > LONGEST_REMARK:
        raise AuditRefused(f"A remark has at most {LONGEST_REMARK} characters.")
    return said, sentence, remark
