"""Stage A: the atomic, cited facts of one source, each with one hard negative.

Paper: §4.2, Stage A.
"""

from typing import Literal

from pdt.contract import Contract, Id, Line, Sha256
from pdt.sources.quote import Quote
from pdt.terms import Alteration


class HardNegative(Contract):
    """A plausible false neighbour of a fact; it must stay absent from every section."""

    statement: Line
    """The false claim, as a sentence."""
    alters: Alteration
    """What it changes: entity, date, quantity or relation."""
    original: Line
    """The words of the fact's statement that it changes."""
    replacement: Line
    """What stands there instead."""


class Fact(Contract):
    """One atomic claim of the source."""

    id: Id
    """Unique in the inventory."""
    statement: Line
    """The claim, as a sentence that stands alone."""
    paragraph_id: Id
    """The source paragraph that says it."""
    quote: Quote
    """The words of that paragraph; offsets count the characters of its text."""
    citation_ids: tuple[Id, ...] = ()
    """The source's own citations for it: some of the paragraph's."""
    hard_negative: HardNegative
    """One altered claim."""


class FactInventory(Contract):
    """Every fact taken from one article."""

    schema_version: Literal["pdt.facts/1"] = "pdt.facts/1"
    """The version of this contract."""
    bundle_id: Sha256
    """The bundle whose article was read."""
    facts: tuple[Fact, ...]
    """In the order of the source."""
