"""The rules by name, and what a broken one reports.

Paper: §4.2.
"""

from dataclasses import dataclass, field

from pdt.contract import Contract


@dataclass(frozen=True)
class Rule:
    """One sentence of the contract and the passage of the paper it comes from."""

    passage: str
    sentence: str


RULES = {
    # Stage A
    "bundle_agrees": Rule("§4.2", "Facts and article name the same source bundle."),
    "fact_count": Rule("§4.2", "The number of facts is within its limits."),
    "fact_ids": Rule("§4.2", "No two facts share an id."),
    "fact_paragraph": Rule("§4.2", "A fact names a paragraph of the article."),
    "fact_quote": Rule("§4.2", "A fact's quote is the paragraph's text at those characters."),
    "fact_citations": Rule(
        "§4.2",
        "A fact's citations are its paragraph's; at least one when the paragraph has any.",
    ),
    "fact_paragraph_spread": Rule("§4.2", "The facts span enough source paragraphs."),
    "fact_section_spread": Rule("§4.2", "The facts span enough top-level source sections."),
    "negative_alters": Rule(
        "§4.2",
        "A hard negative replaces words of its fact's statement by other words.",
    ),
    "negative_alters_words": Rule(
        "§4.2", "A hard negative alters an entity, date, quantity or relation, not a sentence."
    ),
    "negative_not_in_source": Rule("§4.2", "A hard negative is not what the source says."),
    # Stage B: plans and sections
    "lane_count": Rule("§4.2", "There is exactly one plan and one section for each lane."),
    "plan_nodes": Rule("§4.2", "The number of nodes of every plan is within its limits."),
    "section_paragraphs": Rule("§4.2", "The number of paragraphs is within its limits."),
    "presentation_order": Rule("§4.2", "`lane_at_position` names every lane once."),
    "target_paragraphs": Rule(
        "§4.2",
        "Every paragraph realizes exactly one node, and nodes are written in order.",
    ),
    "known_facts": Rule("§4.2", "Plans and roles name facts of the inventory only."),
    # Stage B: roles
    "roles_complete": Rule("§4.2", "Every fact has one role entry with one role for each lane."),
    "one_owner": Rule("§4.2", "Every fact has exactly one OWNER lane."),
    "owner_routed": Rule("§4.2", "Exactly one plan node, in the OWNER lane, owns the fact."),
    "reference_permitted": Rule(
        "§4.2",
        "A REFERENCE needs a node that permits it; a node permits facts of other lanes only.",
    ),
    "role_has_quote": Rule("§4.2", "OWNER and REFERENCE carry a quote, ABSENT carries none."),
    "role_quote": Rule("§4.2", "A role's quote is the section's text at those characters."),
    "role_quote_in_target": Rule(
        "§4.2",
        "A role's quote lies in a target paragraph of a node that owns or permits the fact.",
    ),
    "absent_stays_absent": Rule("§4.2", "An ABSENT lane repeats no evidence of the fact verbatim."),
    "negative_absent": Rule(
        "§4.2", "No hard negative appears in a section, a plan or the request."
    ),
    # Stage B: dependencies
    "dependency_ids": Rule(
        "§4.2",
        "No two dependencies share an id, and exactly the receiver node lists each.",
    ),
    "dependency_ends": Rule("§4.2", "Owner and receiver are existing nodes of different lanes."),
    "dependency_quote": Rule("§4.2", "A dependency's quotes are its sections' text there."),
    "dependency_quote_in_target": Rule(
        "§4.2", "A dependency's quotes lie in their nodes' targets."
    ),
    "dependency_order": Rule("§4.2", "The owner precedes the receiver in presentation order."),
    "dependency_fact": Rule("§4.2", "A fact's dependency runs from its OWNER to a REFERENCE."),
    "coined_quoted": Rule("§4.2", "Coined text stands in both quotes."),
    "coined_hidden": Rule("§4.2", "Coined text is in neither source, request, facts nor plans."),
    "coined_received": Rule(
        "§4.2", "Coined text outside its owner stands only in receiver quotes."
    ),
    "coined_entropy": Rule("§4.2", "2^h distinct alternatives hold the text; one choice, one h."),
    # On tokens
    "no_special_tokens": Rule("§4.3", "No text spells a special token of the student."),
    "source_tokens": Rule("Table 1", "The article's tokens are within their limits."),
    "section_tokens": Rule("§4.2", "A section's student tokens are within their limits."),
    "prompt_tokens": Rule("App. A", "The prompt fits under the ceiling; it is never truncated."),
    "quote_tokens": Rule("§4.3", "Every quote overlaps at least one token."),
    "dependency_published": Rule("§4.3", "The owner quote ends in a completed block."),
    "dependency_delay": Rule(
        "§4.3", "The owner's note is read by the state that chooses the first receiver token."
    ),
    "dependency_window": Rule(
        "§4.3", "And by the state that chooses the last: it is in the window."
    ),
}
"""Every rule by name, in the order in which failures are reported."""

BUNDLE_RULES = {
    "bundle_present": Rule("§4.1", "The article's bundle is there, whole and unchanged."),
    "bundle_citations": Rule("§4.2", "The article's title and citations are those of its bundle."),
}
"""Rules that need the raw bundles: `pdt record check --bundles ROOT`."""

REPLY_RULES = {
    "reply_whole": Rule("§4.2", "A teacher's reply ends by itself, not at its token ceiling."),
    "reply_given": Rule("§4.2", "The teacher answers and does not refuse."),
    "reply_schema": Rule("§4.2", "A teacher's reply is JSON of the schema it was given."),
}
"""Rules of what a language model replies, before there is a document."""


class CheckFailure(Contract):
    """One broken rule: where, what was measured, what was required."""

    rule: str
    """The rule's name, as the table of rules lists it."""
    record_id: str
    """The document."""
    measured: str
    """What was found."""
    required: str
    """What the rule asks for."""
    lane: int | None = None
    """The lane, when the rule is about one."""
    node: int | None = None
    """The plan node, when the rule is about one."""
    fact: str | None = None
    """The fact, when the rule is about one."""
    dependency: str | None = None
    """The dependency, when the rule is about one."""
    paragraph: str | None = None
    """The source paragraph, when the rule is about one."""
    start: int | None = None
    """First character of the passage in question."""
    end: int | None = None
    """One past its last character."""

    @property
    def where(self) -> str:
        """The place in words: `lane 1, fact f3, characters 10-25`."""
        parts = [
            f"{name} {getattr(self, name)}" for name in _PLACES if getattr(self, name) is not None
        ]
        if self.start is not None:
            parts.append(f"characters {self.start}-{self.end}")
        return ", ".join(parts) or "document"

    def __str__(self) -> str:
        return f"{self.rule} ({self.where}): {self.measured}; required: {self.required}"


ALL_RULES = {**RULES, **BUNDLE_RULES, **REPLY_RULES}

_PLACES = ("lane", "node", "fact", "dependency", "paragraph")


@dataclass
class Failures:
    """The failures of one document, collected."""

    record_id: str
    found: list[CheckFailure] = field(default_factory=list)

    def add(self, rule: str, measured: object, required: object, **where: int | str | None) -> None:
        """Note a broken rule; `where` takes the place fields of `CheckFailure`."""
        if rule not in ALL_RULES:
            raise KeyError(rule)
        values = {"measured": str(measured), "required": str(required), **where}
        self.found.append(
            CheckFailure.model_validate({"rule": rule, "record_id": self.record_id, **values})
        )


def shorten(text: str, length: int = 60) -> str:
    """A quotation for a message."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")
