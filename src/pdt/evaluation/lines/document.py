"""A held-out document as the measures see it: who should write what, and which words were coined.

Stored beside every result, so that its tables can be computed again without the corpus.

Paper: §7.1, §7.2, §7.3.
"""

import random
from collections.abc import Sequence

from pdt.contract import Contract, Id, Index, Line, Sha256
from pdt.terms import Split

DEALT = "dealt"
"""A division that stands in the plans and nowhere else."""


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
    owner_token: Index
    """Its last token in the owner's section."""
    receiver_token: Index
    """Its first token in the receiver's section."""


class HeldOutReference(Contract):
    """An ordinary dependency: a receiver refers to a fact of the source that a sibling owns."""

    dependency_id: Id
    fact_id: Id
    owner_lane: Index
    receiver_lane: Index
    receiver_tokens: tuple[Index, ...]
    """The tokens of the receiver's section that refer to it."""


class Transplant(Contract):
    """A node of a lane's outline and the node of another lane's that takes its place."""

    lane: Index
    node: Index
    from_lane: Index
    from_node: Index


class HeldOutOpening(Contract):
    """The first sentence of a section."""

    text: Line
    tokens: tuple[int, ...]


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
    references: tuple[HeldOutReference, ...] = ()
    dependencies: Index = 0
    """All of them: coined, ordinary, and what no measure can read."""
    dependency_receiver: Index | None = None
    """Who needs the first dependency."""
    division: Line | None = None
    """What the sections divide by; `DEALT` where nothing but the plans knows."""
    transplant: Transplant | None = None
    """Which node a transplant replaces; None where no two lanes own facts."""
    openings: tuple[HeldOutOpening, ...] = ()
    """Per lane, how the teacher's section begins."""
    unread_choices: tuple[Id, ...] = ()
    """Coined dependencies that no measure can read: no words lead to it at both ends, or its
    alternatives are not listed or begin with the same token."""

    source: str | None = None
    """What the model read, where sentences are judged by it; Chronicle's claims need none."""

    @property
    def told(self) -> bool:
        """Could a planner that reads source and request know the division?"""
        return self.division != DEALT

    def sibling_opening(self, lane: int) -> HeldOutOpening:
        """The next lane's first sentence: what a lane is made to begin with, against its plan."""
        return self.openings[(lane + 1) % len(self.openings)]

    def facts_at(self, lane: int, node: int) -> list[int]:
        """The numbers of the facts that a plan node owns."""
        place = (lane, node)
        return [n for n, f in enumerate(self.facts) if (f.owner_lane, f.owner_node) == place]

    def under_attack(self) -> "HeldOutDocument":
        """Only what needs the attacked lane: where others are needed too, their notes are whole."""
        return self.model_copy(
            update={
                "dependency_tokens": self.attacked_tokens,
                "choices": tuple(c for c in self.choices if c.owner_lane == self.dependency_owner),
            }
        )


def draw_transplant(name: str, facts: Sequence[HeldOutFact]) -> Transplant | None:
    """Two nodes that own facts, of two lanes; a function of the document's name. None if too few.

    A node whose facts another lane refers to, or that a dependency needs, is as likely as any.
    """
    nodes = sorted({(fact.owner_lane, fact.owner_node) for fact in facts})
    if len({lane for lane, _ in nodes}) < 2:
        return None
    draw = random.Random(f"pdt transplant {name}")
    lane, node = draw.choice(nodes)
    from_lane, from_node = draw.choice([other for other in nodes if other[0] != lane])
    return Transplant(lane=lane, node=node, from_lane=from_lane, from_node=from_node)


def with_coined(documents: Sequence[HeldOutDocument]) -> list[HeldOutDocument]:
    """Those in which something is coined; a single one has no other to exchange notes with."""
    chosen = [document for document in documents if document.choices]
    return chosen if len(chosen) > 1 else []
