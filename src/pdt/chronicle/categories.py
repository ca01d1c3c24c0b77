"""The eight kinds of history that Chronicle invents, each with deeds of its own.

Paper: §4.3 (a pilot balanced across eight historical categories).
"""

from dataclasses import dataclass

from pdt.chronicle.deeds import Deed, deeds_of


@dataclass(frozen=True, slots=True)
class Category:
    """One kind of event."""

    key: str
    noun: str
    """As in `the siege`."""
    title_form: str
    event_form: str
    """The event in running text, with `{place}`."""
    opening: str
    """What such an event is, for the first paragraph of a long article."""

    @property
    def own_deeds(self) -> tuple[Deed, ...]:
        return deeds_of(self.key)

    @property
    def deeds(self) -> tuple[Deed, ...]:
        return self.own_deeds + deeds_of("shared")


CATEGORIES = (
    Category(
        "sieges",
        "siege",
        "Siege of {place}",
        "the siege of {place}",
        "It was less a single battle than a long contest of patience, in which walls, bread and "
        "rumor mattered as much as courage.",
    ),
    Category(
        "revolts",
        "revolt",
        "{place} Revolt",
        "the {place} revolt",
        "It grew out of many small grievances, none of them new, which happened to come together "
        "in one bad year.",
    ),
    Category(
        "treaties",
        "congress",
        "Congress of {place}",
        "the congress of {place}",
        "It brought tired rivals to one table, and it turned on small gestures at least as much as "
        "on great principles.",
    ),
    Category(
        "famines",
        "famine",
        "{place} Famine",
        "the {place} famine",
        "It followed two failed harvests, but bad weather alone does not explain who went hungry "
        "and who did not.",
    ),
    Category(
        "expeditions",
        "expedition",
        "{place} Expedition",
        "the {place} expedition",
        "It set out with more confidence than knowledge, and most of what it learned was learned "
        "by mistake.",
    ),
    Category(
        "reforms",
        "reform",
        "{place} Reform",
        "the {place} reform",
        "It began as a matter of bookkeeping and ended by changing who could speak, who could vote "
        "and who had to pay.",
    ),
    Category(
        "trade-disputes",
        "dispute",
        "{place} Trade Dispute",
        "the {place} trade dispute",
        "It was fought with ledgers, seals and closed doors, and only once or twice with fists.",
    ),
    Category(
        "floods",
        "flood",
        "{place} Flood",
        "the {place} flood",
        "It came at the end of a wet winter, and it showed how much of the lowland had been left "
        "to luck.",
    ),
)
