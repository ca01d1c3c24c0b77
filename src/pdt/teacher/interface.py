"""What every teacher is: two passes over an accepted source, each with a result or a refusal.

A language model behind a server, recorded calls, and Chronicle are teachers alike; whoever uses
one cannot tell which it is.

Paper: §4.2.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pdt.contract import Contract, Id, Sha256
from pdt.sources.article import Article
from pdt.teacher.answer import Answer
from pdt.teacher.checks import CheckFailure
from pdt.teacher.document import TaughtBy, TaughtDocument
from pdt.teacher.facts import FactInventory
from pdt.terms import Split, TeacherPass

T = TypeVar("T", covariant=True)


class TeachingSource(Contract):
    """An accepted article with its split, which is fixed before any teaching."""

    record_id: Id
    """The id that the document and its record will have."""
    split: Split
    """Where it and all its relatives fall."""
    family_key: Id
    """What it shares with its relatives."""
    category: Id
    """The kind of history."""
    article: Article
    """What the teacher reads."""


class Attempt(Contract):
    """One reply of a teacher, kept whether it was good or not."""

    teacher_pass: TeacherPass
    """extract_facts or compose_answer."""
    number: int
    """0 for the first reply, then the repairs."""
    call: Sha256
    """The key of the recorded call."""
    input_tokens: int
    """Tokens that were sent."""
    output_tokens: int
    """Tokens that came back."""
    cost: float
    """What they cost."""
    broken: tuple[str, ...] = ()
    """Every rule that the reply broke; none when it was taken."""


@dataclass(frozen=True)
class Taught(Generic[T]):
    """The result of one pass, with every attempt that it took."""

    value: T
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True)
class Untaught:
    """No attempt was good: the rules that the last one broke."""

    teacher_pass: TeacherPass
    failures: tuple[CheckFailure, ...]
    attempts: tuple[Attempt, ...] = ()


class Teacher(Protocol):
    """Extracts facts, then composes one joint answer from them."""

    def extract_facts(self, source: TeachingSource) -> Taught[FactInventory] | Untaught: ...

    def compose_answer(
        self, source: TeachingSource, inventory: FactInventory
    ) -> Taught[Answer] | Untaught: ...

    def identity(self, source: TeachingSource, attempts: tuple[Attempt, ...]) -> TaughtBy:
        """Who taught this source, in a form that makes the answer repeatable."""
        ...


def teach(teacher: Teacher, source: TeachingSource) -> Taught[TaughtDocument] | Untaught:
    """Both passes, and the document they make."""
    facts = teacher.extract_facts(source)
    if isinstance(facts, Untaught):
        return facts
    answer = teacher.compose_answer(source, facts.value)
    attempts = facts.attempts + answer.attempts
    if isinstance(answer, Untaught):
        return Untaught(answer.teacher_pass, answer.failures, attempts)
    document = as_document(source, facts.value, answer.value, teacher.identity(source, attempts))
    return Taught(document, attempts)


def as_document(
    source: TeachingSource, inventory: FactInventory, answer: Answer, by: TaughtBy
) -> TaughtDocument:
    return TaughtDocument(
        record_id=source.record_id,
        split=source.split,
        family_key=source.family_key,
        category=source.category,
        article=source.article,
        inventory=inventory,
        answer=answer,
        teacher=by,
    )
