"""A held-out document as the measures see it: who should write what, and which words were coined.

Stored beside every result, so that its tables can be computed again without the corpus.

Paper: §7.1, §7.2, §7.3.
"""

from collections.abc import Sequence

from pdt.contract import Contract, Id, Index, Line, Sha256
from pdt.terms import Split


class HeldOutFact(Contract):
    """One fact, its owner and who else may mention it. Lanes are the teacher's."""

    id: Id
    statement: Line
    hard_negative: Line
    owner_lane: Index
    owner_node: Index
    reference_lanes: tuple[Index, ...]
    """Lanes whose teacher section mentions it."""
    permitted_lanes: tuple[Index, ...]
    """Lanes whose plan allows a mention, used or not."""


class HeldOutChoice(Contract):
    """One coined word that a receiver has to learn from its owner."""

    dependency_id: Id
    choice_id: Id
    text: Line
    alternatives: tuple[Line, ...]
    entropy_bits: float
    owner_lane: Index
    receiver_lane: Index
    cue: Line
    """The words that stand before it at both ends: `the Song of the`."""
    cue_tokens: tuple[int, ...]
    alternative_tokens: tuple[tuple[int, ...], ...]
    """The tokens of each alternative behind the cue."""
    receiver_token: Index
    """Its first token in the receiver's section."""


class HeldOutDocument(Contract):
    """What a result directory keeps of one document."""

    record_id: Id
    split: Split
    family_key: Id
    category: Id
    teacher: Line
    text_sha256: Sha256
    """Of source and request: what the model was given."""
    facts: tuple[HeldOutFact, ...]
    section_lengths: tuple[Index, ...]
    """Tokens of each teacher section, EOS included."""
    dependency_tokens: tuple[tuple[Index, ...], ...]
    """Per lane, the tokens that overlap a required receiver quote."""
    dependency_owner: Index | None
    """The lane whose notes the controls attack: owner of the first dependency."""
    attacked_tokens: tuple[tuple[Index, ...], ...]
    """Those of the dependency tokens that need this lane's notes."""
    choices: tuple[HeldOutChoice, ...]
    unread_choices: tuple[Id, ...] = ()
    """Coined dependencies that no measure can read: no words lead to it at both ends, or its
    alternatives are not listed or begin with the same token."""

    source: str | None = None
    """What the model read, where sentences are judged by it; Chronicle's claims need none."""

    def under_attack(self) -> "HeldOutDocument":
        """Only what needs the attacked lane: where others are needed too, their notes are whole."""
        return self.model_copy(
            update={
                "dependency_tokens": self.attacked_tokens,
                "choices": tuple(c for c in self.choices if c.owner_lane == self.dependency_owner),
            }
        )


def with_coined(documents: Sequence[HeldOutDocument]) -> list[HeldOutDocument]:
    """Those in which something is coined; a single one has no other to exchange notes with."""
    chosen = [document for document in documents if document.choices]
    return chosen if len(chosen) > 1 else []
