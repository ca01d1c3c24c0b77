"""How large a Chronicle document is, and how much its lanes have to tell one another.

`--size` takes one of `SIZES`; `--set key=value` turns a single dial.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from pdt.chronicle.names import COINED
from pdt.config import ContractLimits, Count, Range, Strict, parse_override
from pdt.errors import ConfigError, UsageError

Share = Annotated[float, Field(ge=0, le=1)]
MOST_BITS = len(COINED).bit_length() - 1
APART = MOST_BITS - 3
"""Up to so many bits each, coined choices of one kind have words of their own."""


class Dials(Strict):
    """One kind of Chronicle corpus."""

    size: str
    """A name of `SIZES`."""
    facts_per_cell: Annotated[int, Field(ge=1, le=5)]
    """Facts for each phase and theme: nine times as many in all."""
    dropped_facts: Annotated[int, Field(ge=0, le=3)]
    """Up to so many facts are left out again, so that documents differ in number."""
    source_tokens: Range
    """Of the article, title and headings included."""
    section_tokens: Range
    """Of one section, its end-of-text token not counted."""
    detail: Annotated[int, Field(ge=0, le=2)]
    """0: bare facts and remarks. 1: reasons. 2: reasons, results and topic sentences."""
    fact_nodes: Count
    """Most plan nodes of one lane that own facts."""
    coined_share: Share = 0.5
    """Documents whose lanes depend on something a sibling coined."""
    ordinary_share: Share = 0.25
    """Documents in which a lane refers to a sibling's source fact instead."""
    bits: tuple[Annotated[int, Field(ge=1, le=MOST_BITS)], ...] = (1, 2, 3, 4)
    """h: a coined choice is one of 2^h; each document draws one of these."""
    lags: tuple[Count, ...] = (1, 2)
    """Blocks from the coining to its use; 1 is the least the barrier allows."""
    barrier_tokens: Annotated[int, Field(ge=0, le=31)] = 31
    """Most tokens between the coined word and the end of its block, where the note is written."""
    least_coins: Count = 1
    """Fewest choices that a document coins, where it coins any."""
    coins: Count = 1
    """Most; each has a noun and words of its own."""
    receivers: Annotated[int, Field(ge=1, le=2)] = 1
    """Most lanes that use one coined choice."""
    divisions: tuple[Literal["phase", "theme", "party", "dealt"], ...] = (
        "phase",
        "theme",
        "party",
    )
    """What a request may divide by; each is as likely as the others. `dealt`: facts fall to lanes
    and nodes by chance, the request says nothing of it, and only the plan knows."""
    cue_first: bool = False
    """Source and section say what a fact is about before who did it, and a section counts its
    paragraphs (First, Then, Last): for models too small to plan a sentence. Bare facts only."""

    cue_share: Share = 1.0
    """Of the facts where `cue_first` is on; the others begin with who did it or what was done."""
    facts: Range | None = None
    """How many a document has, drawn from this, instead of so many for each phase and theme."""
    names: Literal["whole", "parts", "unseen"] = "whole"
    """Places and surnames of one piece each, of two parts, or of two parts that no training text
    has together."""
    openings: bool = True
    """Whether a section opens by saying what it is about, and counts its paragraphs."""
    remarks: Count = 1
    """Most remarks on one fact of a section."""
    source_words: Share = 0.0
    """Of the facts, how many a section tells in the very words of the source."""
    other_facts: Annotated[int, Field(ge=0)] = 0
    """The source also tells up to so many facts of another event."""
    asides: Annotated[int, Field(ge=0)] = 0
    """The source has up to so many paragraphs that no fact stands in."""

    @property
    def limits(self) -> ContractLimits:
        """The contract that documents of this size keep."""
        cells = 9
        most = cells * self.facts_per_cell
        return ContractLimits(
            source_tokens=self.source_tokens,
            facts=self.facts or Range(min=min(18, most - self.dropped_facts), max=max(most, 9)),
            fact_paragraphs=12 if self.detail == 2 else 3,
            fact_sections=4 if self.detail == 2 else 2,
            plan_nodes=Range(min=4, max=8) if self.detail else Range(min=2, max=4),
            section_tokens=self.section_tokens,
            section_paragraphs=Range(min=4, max=12) if self.detail else Range(min=2, max=4),
        )

    @model_validator(mode="after")
    def _shares(self) -> "Dials":
        if self.coined_share + self.ordinary_share > 1:
            raise ValueError("coined_share and ordinary_share add up to more than 1; lower one")
        if self.facts and (self.facts.min < 3 or self.facts.max > 27):
            raise ValueError("facts are 3 to 27: a lane has at least one, a cell at most three")
        if self.facts and self.facts.min < 6 and self.divisions != ("dealt",):
            raise ValueError(
                "with fewer than 6 facts divisions are [dealt]: no other divides evenly"
            )
        if self.cue_first and self.detail:
            raise ValueError("cue_first tells bare facts; set detail=0, or cue_first=false")
        if not self.bits or not self.lags or not self.divisions:
            raise ValueError("bits, lags and divisions must each name at least one value")
        if not self.least_coins <= self.coins <= 2 * len(set(self.bits)):
            raise ValueError(
                "least_coins is at most coins, and coins at most twice the number of bits"
            )
        apart = MOST_BITS - 1 if self.coins == 2 else APART
        if self.coins > 1 and max(self.bits) > apart:
            raise ValueError(
                f"{self.coins} coins with more than {apart} bits would share words; "
                "lower bits or coins"
            )
        return self


SIZES = {
    "nano": Dials(
        size="nano",
        facts_per_cell=1,
        dropped_facts=3,
        source_tokens=Range(min=150, max=300),
        section_tokens=Range(min=64, max=160),
        detail=0,
        fact_nodes=3,
    ),
    "small": Dials(
        size="small",
        facts_per_cell=2,
        dropped_facts=0,
        source_tokens=Range(min=500, max=1200),
        section_tokens=Range(min=180, max=400),
        detail=1,
        fact_nodes=6,
        lags=(1, 2, 3),
    ),
    "canonical": Dials(
        size="canonical",
        facts_per_cell=5,
        dropped_facts=2,
        source_tokens=Range(min=3000, max=7000),
        section_tokens=Range(min=700, max=1000),
        detail=2,
        fact_nodes=6,
        bits=(2, 4, 6),
        lags=(1, 2, 4, 8),
        coins=2,
        receivers=2,
    ),
}


def turn_dials(size: str, overrides: Sequence[str] = ()) -> Dials:
    """The dials of a size, with `key=value` overrides on top."""
    if size not in SIZES:
        raise UsageError(f"There is no size {size!r}.\nSizes: {', '.join(SIZES)}.")
    tree: dict[str, Any] = SIZES[size].model_dump()
    for text in overrides:
        tree.update(parse_override(text))
    try:
        return Dials.model_validate(tree)
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, problem['loc'])) or 'dials'}: "
            f"{problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        ]
        known = f"Dials: {', '.join(Dials.model_fields)}."
        raise ConfigError("\n".join(["These dials cannot be set so.", *lines, known])) from error
