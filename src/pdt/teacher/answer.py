"""Stage B: one request and one joint answer: plans, sections, order, roles, dependencies.

Lanes here are semantic: `plans[k]` is written as `sections[k]`. Which physical decoder gets which
is drawn anew for every training example.

Paper: §4.2, Stage B.
"""

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from pdt.contract import Contract, Id, Index, Line
from pdt.sources.quote import Quote
from pdt.terms import FactRole

PARAGRAPH_BREAK = "\n\n"


class PlanNode(Contract):
    """One step of a lane's ordered outline."""

    objective: Line
    """What this part of the section explains."""
    owned_facts: tuple[Id, ...] = ()
    """Facts that this node, and no other node of any plan, must write."""
    reference_facts: tuple[Id, ...] = ()
    """Facts of other lanes that this node may mention."""
    dependencies: tuple[Id, ...] = ()
    """Dependencies that this node receives."""
    target_paragraphs: tuple[Index, ...] = Field(min_length=1)
    """Paragraphs of the lane's section, counted from 0, that realize the node."""


class Plan(Contract):
    """The outline of one lane."""

    nodes: tuple[PlanNode, ...]
    """In the order in which they are written."""


class TargetSection(Contract):
    """What one lane writes."""

    paragraphs: tuple[Line, ...] = Field(min_length=1)
    """Connected prose, in order."""

    @cached_property
    def text(self) -> str:
        """The paragraphs joined by an empty line; quotes count its characters."""
        return PARAGRAPH_BREAK.join(self.paragraphs)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """First and one-past-last character of each paragraph in `text`."""
        spans, start = [], 0
        for paragraph in self.paragraphs:
            spans.append((start, start + len(paragraph)))
            start += len(paragraph) + len(PARAGRAPH_BREAK)
        return tuple(spans)


class LaneRole(Contract):
    """What one lane does with one fact."""

    role: FactRole
    """OWNER, REFERENCE or ABSENT."""
    quotes: tuple[Quote, ...] = ()
    """Where the lane's section says it; offsets count the characters of the section's text."""


class FactRoles(Contract):
    """One fact across all lanes."""

    fact_id: Id
    """A fact of the inventory."""
    lanes: tuple[LaneRole, ...]
    """One role per lane, in lane order."""


class DependencyEnd(Contract):
    """One side of a dependency."""

    lane: Index
    """The plan and section."""
    node: Index
    """The plan node, counted from 0."""
    quote: Quote
    """The words of that lane's section."""


class CoinedChoice(Contract):
    """Something an owner section made up, drawn from 2^h equally likely texts."""

    choice_id: Id
    """One draw; dependencies that repeat the same coined text share it, and its bits count once."""
    text: Line
    """What was coined; in neither the source, the request, nor any plan."""
    entropy_bits: float = Field(ge=0)
    """h: the information a receiver cannot have without the owner's note."""
    alternatives: tuple[Line, ...] = ()
    """All 2^h texts it was drawn from, `text` among them; empty when they are not listed."""


class Dependency(Contract):
    """A later section relies on what an earlier section wrote."""

    id: Id
    """Unique in the answer; the receiver's plan node lists it."""
    owner: DependencyEnd
    """Who writes it first."""
    receiver: DependencyEnd
    """Who refers to it, at least one block later."""
    fact_id: Id | None = None
    """The source fact that is referred to, when it is one."""
    coined: CoinedChoice | None = None
    """The coined choice that is referred to, when it is one."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Dependency":
        if self.fact_id is not None and self.coined is not None:
            raise ValueError("a dependency refers to a fact or to a coined choice, not to both")
        return self


class Answer(Contract):
    """The joint three-lane answer."""

    schema_version: Literal["pdt.answer/1"] = "pdt.answer/1"
    """The version of this contract."""
    request: Line
    """The expository prompt."""
    plans: tuple[Plan, ...]
    """One per lane; as a set they have no order."""
    sections: tuple[TargetSection, ...]
    """`sections[k]` realizes `plans[k]`."""
    lane_at_position: tuple[Index, ...]
    """Which lane the reader sees first, second, third."""
    roles: tuple[FactRoles, ...]
    """One entry per fact of the inventory."""
    dependencies: tuple[Dependency, ...] = ()
    """Cross-lane references; a record without any is valid."""
