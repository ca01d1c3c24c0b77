"""An exact passage of a text, with its place, so that a repeated quote is never ambiguous."""

from pydantic import Field

from pdt.contract import Contract, Index


class Quote(Contract):
    """`text[start:end]`, verbatim. Offsets count Unicode characters, not bytes."""

    start: Index
    """First character, counted from 0."""
    end: int = Field(ge=1)
    """One past the last character."""
    text: str = Field(min_length=1)
    """The characters between, exactly."""

    def matches(self, text: str) -> bool:
        """Does `text` really read so at this place?"""
        return self.end <= len(text) and text[self.start : self.end] == self.text


def quote_at(text: str, start: int, end: int) -> Quote:
    """The quote of `text` between two characters."""
    return Quote(start=start, end=end, text=text[start:end])
