"""What a screen decides: for every condition, physical lane and fact, is it there?

Paper: §7.2.
"""

from collections.abc import Sequence

from pdt.contract import Contract, Id, Line

TableKF = tuple[tuple[int, ...], ...]
"""By physical lane, then fact: 1 or 0, or a place."""


class LaneFacts(Contract):
    """Which facts of a document stand in which lane, as a screen sees it."""

    stated_KF: TableKF
    """The lane says the fact."""
    mentioned_KF: TableKF
    """The lane says it or refers to it, value included."""
    hard_negative_KF: TableKF
    """The lane says the altered claim."""
    altered_KF: TableKF | None = None
    """The lane speaks of it with a value that is not the source's, where a screen can tell."""
    wrong_doer_KF: TableKF | None = None
    """The lane says that another party did it, where a screen can tell."""
    place_KF: TableKF | None = None
    """The character of the lane's text, runs of space counted as one, at which the sentence that
    first mentions it begins; -1 where none does. None where a screen cannot tell."""

    @classmethod
    def of_facts(
        cls,
        stated_FK: Sequence[Sequence[bool]],
        mentioned_FK: Sequence[Sequence[bool]],
        hard_negative_FK: Sequence[Sequence[bool]],
        altered_FK: Sequence[Sequence[bool]] | None = None,
        wrong_doer_FK: Sequence[Sequence[bool]] | None = None,
        place_FK: Sequence[Sequence[int]] | None = None,
    ) -> "LaneFacts":
        """From tables that go fact by fact."""

        def turned(table: Sequence[Sequence[int]]) -> TableKF:
            return tuple(tuple(int(cell) for cell in lane) for lane in zip(*table, strict=True))

        def given(table: Sequence[Sequence[int]] | None) -> TableKF | None:
            return None if table is None else turned(table)

        return cls(
            stated_KF=turned(stated_FK),
            mentioned_KF=turned(mentioned_FK),
            hard_negative_KF=turned(hard_negative_FK),
            altered_KF=given(altered_FK),
            wrong_doer_KF=given(wrong_doer_FK),
            place_KF=given(place_FK),
        )


class Judgment(Contract):
    """A line of judgments.jsonl."""

    screen: Line
    condition: Id
    record_id: Id
    judged: LaneFacts
