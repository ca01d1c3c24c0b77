"""From votes to decisions: what counts is the last answer on each ticket, and then who settled it.

A decision is what two annotators agree on, or what the adjudicator says where they differ and where
a check was drawn.

Paper: §7.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pdt.audit.answers import Answer, Purpose
from pdt.audit.blinding import Blind, deal, seat_holder
from pdt.audit.queue import Queue
from pdt.audit.store.chain import Vote
from pdt.errors import AuditRefused, ContractBroken


@dataclass(frozen=True)
class Decision:
    """One item with the votes that decide it."""

    item: int
    seats: tuple[int, int]
    first: Vote
    second: Vote
    third: Vote | None
    """The adjudicator's, where there is one."""

    @property
    def answer(self) -> Answer:
        return answer_of(self.third or self.first)

    @property
    def sentence(self) -> int | None:
        """The sentence that decides: the adjudicator's, else the first that either marked."""
        votes = (self.first, self.second) if self.third is None else (self.third,)
        return min((v.sentence for v in votes if v.sentence is not None), default=None)


@dataclass(frozen=True)
class Missing:
    """What an audit still waits for."""

    judgments: int
    adjudications: int

    def __bool__(self) -> bool:
        return bool(self.judgments or self.adjudications)


def answer_of(vote: Vote) -> Answer:
    assert vote.answer is not None, "a current vote has an answer"
    return vote.answer


def current_votes(votes: Iterable[Vote]) -> dict[str, Vote]:
    """By ticket, the last vote, unless it was taken back."""
    last = {vote.ticket: vote for vote in votes}
    return {ticket: vote for ticket, vote in last.items() if vote.answer is not None}


def decide(
    queue: Queue, blind: Blind, votes: Sequence[Vote]
) -> tuple[dict[int, Decision], Missing]:
    """Every item that is decided, and how much is missing."""
    current = current_votes(votes)
    settled = {vote.item: vote for vote in current.values() if vote.purpose is Purpose.ADJUDICATION}
    decisions: dict[int, Decision] = {}
    judgments = adjudications = 0
    for item in queue.items:
        seats = blind.seats_of(item.number, queue.plan.seats)
        pair = [
            current.get(blind.ticket(seat_holder(seat), Purpose.JUDGMENT, item.number))
            for seat in seats
        ]
        first, second = pair
        if first is None or second is None:
            judgments += pair.count(None)
            continue
        checked = blind.is_checked(item.number, queue.plan.check_share)
        third = settled.get(item.number)
        if third is None and (first.answer != second.answer or checked):
            adjudications += 1
            continue
        decisions[item.number] = Decision(item.number, seats, first, second, third)
    return decisions, Missing(judgments, adjudications)


def decided(queue: Queue, blind: Blind, votes: Sequence[Vote]) -> dict[int, Decision]:
    """Every item's decision; an audit that is not finished is refused."""
    decisions, missing = decide(queue, blind, votes)
    if missing:
        raise AuditRefused(
            f"The audit is not finished: {missing.judgments} judgments and "
            f"{missing.adjudications} adjudications are missing.\n"
            "`pdt audit status` says whose. The sample is sealed, so none can be left out."
        )
    return decisions


def check_votes(
    queue: Queue, blind: Blind, training: Mapping[int, int], votes: Sequence[Vote]
) -> None:
    """Every vote is on a ticket of this audit, by somebody who may; nobody settles their own.

    `training` says, by person, how many rounds of examples they were dealt.
    """
    numbers = [item.number for item in queue.items]
    known = {
        dealt.ticket: (dealt.item, dealt.purpose)
        for seat in range(queue.plan.seats)
        for dealt in deal(blind, queue.plan, numbers, seat)
    }
    judged: dict[int, set[int]] = {}
    for vote in votes:
        holder = f"person {vote.person}"
        if vote.purpose is Purpose.TRAINING:
            rounds = range(training.get(vote.person, 0))
            right = any(
                blind.ticket(holder, vote.purpose, vote.item, n) == vote.ticket for n in rounds
            )
        elif vote.purpose is Purpose.ADJUDICATION:
            right = blind.ticket(holder, vote.purpose, vote.item) == vote.ticket
        else:
            right = known.get(vote.ticket) == (vote.item, vote.purpose)
            judged.setdefault(vote.item, set()).add(vote.person)
        if not right:
            raise _forged(vote, "is on a ticket that was never dealt")
    for vote in votes:
        if vote.purpose is Purpose.ADJUDICATION and vote.person in judged.get(vote.item, ()):
            raise _forged(vote, "settles an item that the same person judged")
    for decision in decide(queue, blind, votes)[0].values():
        if decision.first.person == decision.second.person:
            raise _forged(decision.second, "is the same person's second vote on one item")


def _forged(vote: Vote, what: str) -> ContractBroken:
    return ContractBroken(
        f"Vote {vote.number} {what}.", "No audit writes such a vote. Take the directory again."
    )
