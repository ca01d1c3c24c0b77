"""What a language model is asked to write: the contract without anything that it would get wrong.

A draft holds no offsets (we find them), no ABSENT labels (they follow), and its paragraphs lie in
the nodes they realize. Every field is required and nothing else is allowed, so that a server can
hold the model to the JSON Schema while it writes.

Paper: §4.2.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from pdt.terms import Alteration


class Draft(BaseModel):
    """A node of a reply; its field docs are the schema's descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NegativeDraft(Draft):
    """A false neighbour of the fact."""

    alters: Alteration
    """What is changed: an entity, a date, a quantity or a relation."""
    original: str
    """The words of the fact's statement that are changed, copied exactly."""
    replacement: str
    """The words that stand there instead."""
    statement: str
    """The fact's statement with the original replaced; plausible, and false."""


class FactDraft(Draft):
    """One atomic claim of the source."""

    id: str
    """f1, f2, f3, ... in the order of the source."""
    paragraph_id: str
    """The id of the paragraph that says it."""
    quote: str
    """The words of that paragraph that say it, copied character by character."""
    citation_ids: list[str]
    """Those of the paragraph's citation ids that support it; at least one if it has any."""
    statement: str
    """The claim as one sentence that is understood alone."""
    hard_negative: NegativeDraft
    """One plausible false claim."""


class FactsDraft(Draft):
    """The fact inventory of one source."""

    facts: list[FactDraft]
    """In the order of the source."""


class EvidenceDraft(Draft):
    """A fact, and where the node's own paragraphs say it."""

    fact_id: str
    """A fact of the inventory."""
    quotes: list[str]
    """Words of this node's paragraphs that say it, copied character by character."""


class NodeDraft(Draft):
    """One step of a section's outline, and the paragraphs that carry it out."""

    objective: str
    """What this step explains, without giving its facts away."""
    owned_facts: list[EvidenceDraft]
    """Facts that this node, and no other node of any section, tells; one quote or more each."""
    reference_facts: list[EvidenceDraft]
    """Facts of other sections that this node mentions in passing; one quote or more each."""
    paragraphs: list[str]
    """One or more paragraphs of connected prose."""


class LaneDraft(Draft):
    """One section."""

    nodes: list[NodeDraft]
    """In the order in which they are read."""


class DependencyDraft(Draft):
    """A later section that relies on what an earlier section wrote."""

    owner_lane: int
    """Index in `lanes` of the section that says it first."""
    owner_node: int
    """Index of its node."""
    owner_quote: str
    """The words of that node's paragraphs, copied character by character."""
    receiver_lane: int
    """Index in `lanes` of the section that refers to it."""
    receiver_node: int
    """Index of its node."""
    receiver_quote: str
    """The words that refer to it, copied character by character."""
    fact_id: str | None
    """The fact that is referred to, when it is one: owned there and a reference here."""


class AnswerDraft(Draft):
    """One request and its joint answer."""

    request: str
    """What a reader could ask so that these sections are the answer."""
    lanes: list[LaneDraft]
    """The sections."""
    presentation_order: list[int]
    """Indices in `lanes`, in the order in which the reader sees the sections."""
    dependencies: list[DependencyDraft]
    """Empty unless a section really relies on another."""


def reply_schema(draft: type[Draft]) -> dict[str, Any]:
    """The JSON Schema that a server enforces."""
    return draft.model_json_schema()
