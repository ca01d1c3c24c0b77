"""How the annotators did: agreement by group, self-agreement, time. Shown once the audit is closed.

Paper: §7.2.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from pdt.audit.agreement import Pair, agreement, quartiles
from pdt.audit.answers import Answer, Purpose
from pdt.audit.decisions import Decision, answer_of, current_votes
from pdt.audit.queue import AuditItem, Queue
from pdt.audit.store.chain import Vote
from pdt.contract import Contract, Index, Line
from pdt.evaluation.measures.bootstrap import Bootstrap, Measure

RESAMPLES, CONFIDENCE = 10_000, 0.95
EVERYTHING = "all"


class GroupAgreement(Contract):
    """Two annotators on the items of one group."""

    group: Line
    """all, a condition, or a kind of claim."""
    items: Index
    differed: Index
    """Items on which the two annotators differ."""
    overruled: Index
    """Items on which they agree and the adjudicator says otherwise."""
    measures: dict[str, Measure | None]
    """By statistic; none where it is undefined."""


class PersonWork(Contract):
    """One account's work, without a name."""

    person: Index
    answers: Index
    withdrawn: Index
    seconds: tuple[float, float, float] | None
    """Quartiles of the time for an item, on the page."""
    repeats: Index
    self_agreement: Measure | None
    """On the items that returned."""


class AuditWork(Contract):
    """agreement.json."""

    groups: tuple[GroupAgreement, ...]
    people: tuple[PersonWork, ...]
    final: dict[Line, Index]
    """How often each answer is the final one."""


def summarize(queue: Queue, votes: Sequence[Vote], decisions: Mapping[int, Decision]) -> AuditWork:
    boot = Bootstrap(resamples=RESAMPLES, confidence=CONFIDENCE, seed=queue.plan.seed)
    groups: dict[str, list[AuditItem]] = {EVERYTHING: list(queue.items)}
    for item in queue.items:
        groups.setdefault(f"condition {queue.texts[item.text].condition}", []).append(item)
    for item in queue.items:
        groups.setdefault(str(item.claim), []).append(item)
    return AuditWork(
        groups=tuple(_group(name, items, queue, decisions, boot) for name, items in groups.items()),
        people=tuple(
            _person(person, queue, votes, boot)
            for person in sorted({vote.person for vote in votes})
        ),
        final=_counts(decisions),
    )


def _group(
    name: str,
    items: Sequence[AuditItem],
    queue: Queue,
    decisions: Mapping[int, Decision],
    boot: Bootstrap,
) -> GroupAgreement:
    chosen = [decisions[item.number] for item in items]
    same = [d for d in chosen if d.first.answer == d.second.answer]
    pairs = [
        Pair(
            queue.texts[item.text].record_id,
            decision.seats,
            answer_of(decision.first),
            answer_of(decision.second),
        )
        for item, decision in zip(items, chosen, strict=True)
    ]
    return GroupAgreement(
        group=name,
        items=len(items),
        differed=len(chosen) - len(same),
        overruled=sum(d.answer != d.first.answer for d in same),
        measures=agreement(pairs, boot),
    )


def _person(person: int, queue: Queue, votes: Sequence[Vote], boot: Bootstrap) -> PersonWork:
    mine = [v for v in votes if v.person == person and v.purpose is not Purpose.TRAINING]
    current = [v for v in current_votes(votes).values() if v.person == person]
    first = {v.item: answer_of(v) for v in current if v.purpose is Purpose.JUDGMENT}
    again = [v for v in current if v.purpose is Purpose.REPEAT and v.item in first]
    shares: dict[str, list[float]] = {}
    for vote in again:
        document = queue.texts[queue.items[vote.item].text].record_id
        shares.setdefault(document, []).append(float(answer_of(vote) == first[vote.item]))
    return PersonWork(
        person=person,
        answers=sum(v.answer is not None for v in mine),
        withdrawn=sum(v.answer is None for v in mine),
        seconds=quartiles([v.seconds for v in mine if v.seconds is not None]),
        repeats=len(again),
        self_agreement=boot.mean({name: sum(v) / len(v) for name, v in shares.items()}),
    )


def _counts(decisions: Mapping[int, Decision]) -> dict[str, int]:
    found = Counter(decision.answer for decision in decisions.values())
    return {str(answer): found[answer] for answer in Answer}
