"""Cross-lane dependencies, and coined choices of known entropy. Paper: §4.2, Stage B."""

from collections import Counter

from pdt.teacher.answer import Answer, CoinedChoice, Dependency
from pdt.teacher.checks.facts import fold
from pdt.teacher.checks.roles import in_target
from pdt.teacher.checks.rules import Failures, shorten
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole


def check_dependencies(document: TaughtDocument, found: Failures) -> None:
    answer = document.answer
    _check_listing(answer, found)
    for dependency in answer.dependencies:
        if _check_ends(answer, dependency, found):
            _check_order(answer, dependency, found)
            _check_fact(answer, dependency, found)
    _check_coined(document, found)


def _check_listing(answer: Answer, found: Failures) -> None:
    listed = [
        (name, (lane, index))
        for lane, plan in enumerate(answer.plans)
        for index, node in enumerate(plan.nodes)
        for name in node.dependencies
    ]
    counts = Counter(dependency.id for dependency in answer.dependencies)
    for name, count in counts.items():
        if count > 1:
            found.add("dependency_ids", f"{count} dependencies", "one", dependency=name)
    for dependency in answer.dependencies:
        places = [place for name, place in listed if name == dependency.id]
        receiver = (dependency.receiver.lane, dependency.receiver.node)
        if places != [receiver]:
            found.add(
                "dependency_ids",
                f"listed by (lane, node) {places}",
                f"its receiver {receiver}",
                dependency=dependency.id,
            )
    for name, (lane, node) in listed:
        if name not in counts:
            found.add("dependency_ids", f"{name} is unknown", "a dependency", lane=lane, node=node)


def _check_ends(answer: Answer, dependency: Dependency, found: Failures) -> bool:
    """Are both ends places that exist? Then also check their quotes."""
    lanes = min(len(answer.plans), len(answer.sections))
    ends = (dependency.owner, dependency.receiver)
    exist = all(end.lane < lanes and end.node < len(answer.plans[end.lane].nodes) for end in ends)
    if not exist or dependency.owner.lane == dependency.receiver.lane:
        found.add(
            "dependency_ends",
            f"(lane, node) {[(end.lane, end.node) for end in ends]}",
            "two existing nodes of different lanes",
            dependency=dependency.id,
        )
    if not exist:
        return False
    for end in ends:
        text = answer.sections[end.lane].text
        place = {"lane": end.lane, "start": end.quote.start, "end": end.quote.end}
        if not end.quote.matches(text):
            there = shorten(text[end.quote.start : end.quote.end])
            found.add(
                "dependency_quote",
                f"the section reads {there}",
                shorten(end.quote.text),
                dependency=dependency.id,
                **place,
            )
        elif not in_target(answer, end.lane, end.node, end.quote):
            found.add(
                "dependency_quote_in_target",
                "elsewhere",
                f"a target paragraph of node {end.node}",
                dependency=dependency.id,
                **place,
            )
    return True


def _check_order(answer: Answer, dependency: Dependency, found: Failures) -> None:
    order = list(answer.lane_at_position)
    owner, receiver = dependency.owner.lane, dependency.receiver.lane
    if owner in order and receiver in order and order.index(owner) >= order.index(receiver):
        found.add(
            "dependency_order",
            f"owner at position {order.index(owner)}, receiver at {order.index(receiver)}",
            "the owner first",
            dependency=dependency.id,
        )


def _check_fact(answer: Answer, dependency: Dependency, found: Failures) -> None:
    if dependency.fact_id is None:
        return
    roles = next((r.lanes for r in answer.roles if r.fact_id == dependency.fact_id), ())
    ends = (dependency.owner.lane, dependency.receiver.lane)
    got = [roles[lane].role if lane < len(roles) else None for lane in ends]
    if got != [FactRole.OWNER, FactRole.REFERENCE]:
        found.add(
            "dependency_fact",
            f"roles {[str(role) for role in got]}",
            "owner, then reference",
            dependency=dependency.id,
            fact=dependency.fact_id,
        )


def _check_coined(document: TaughtDocument, found: Failures) -> None:
    answer = document.answer
    hidden_from = _texts_before_writing(document)
    first: dict[str, Dependency] = {}
    for dependency in answer.dependencies:
        choice = dependency.coined
        if choice is None:
            continue
        for name, end in (("owner", dependency.owner), ("receiver", dependency.receiver)):
            if choice.text not in end.quote.text:
                found.add(
                    "coined_quoted",
                    f"not in the {name} quote {shorten(end.quote.text)}",
                    shorten(choice.text),
                    dependency=dependency.id,
                )
        for name, text in hidden_from.items():
            if fold(choice.text) in text:
                found.add(
                    "coined_hidden",
                    f"{shorten(choice.text)} is in the {name}",
                    "absent",
                    dependency=dependency.id,
                )
        _check_entropy(dependency, choice, first.setdefault(choice.choice_id, dependency), found)
    for dependency in first.values():
        _check_received(answer, dependency, found)


def _texts_before_writing(document: TaughtDocument) -> dict[str, str]:
    facts = document.inventory.facts
    return {
        "source": fold(document.article.text),
        "request": fold(document.answer.request),
        "facts": fold(
            " | ".join(
                text for fact in facts for text in (fact.statement, fact.hard_negative.statement)
            )
        ),
        "plans": fold(
            " | ".join(node.objective for plan in document.answer.plans for node in plan.nodes)
        ),
    }


def _check_entropy(
    dependency: Dependency, choice: CoinedChoice, first: Dependency, found: Failures
) -> None:
    options = choice.alternatives
    if options and (
        len(set(options)) != len(options)
        or choice.text not in options
        or len(options) != 2**choice.entropy_bits
    ):
        found.add(
            "coined_entropy",
            f"{len(set(options))} distinct alternatives for {choice.entropy_bits} bits",
            "2^h distinct texts, the coined one among them",
            dependency=dependency.id,
        )
    if choice != first.coined or dependency.owner.lane != first.owner.lane:
        found.add(
            "coined_entropy",
            f"{dependency.id} and {first.id} describe {choice.choice_id} differently",
            "one choice has one text, one h and one owner lane",
            dependency=dependency.id,
        )


def _check_received(answer: Answer, first: Dependency, found: Failures) -> None:
    """Every occurrence in a lane other than the owner's is a declared receiver quote."""
    assert first.coined is not None
    text = first.coined.text
    for lane, section in enumerate(answer.sections):
        if lane == first.owner.lane:
            continue
        quotes = [
            (other.receiver.quote.start, other.receiver.quote.end)
            for other in answer.dependencies
            if other.coined is not None
            and other.coined.choice_id == first.coined.choice_id
            and other.receiver.lane == lane
        ]
        start = section.text.find(text)
        while start >= 0:
            end = start + len(text)
            if not any(begin <= start and end <= stop for begin, stop in quotes):
                found.add(
                    "coined_received",
                    shorten(text),
                    "only inside a receiver quote",
                    dependency=first.id,
                    lane=lane,
                    start=start,
                    end=end,
                )
            start = section.text.find(text, start + 1)
