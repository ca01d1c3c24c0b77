"""A small audit without a model: texts that say plainly what stands in them, and people."""

import random
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.orm import Session

from pdt.audit.adjudication import next_dispute, settle
from pdt.audit.answers import Answer, Role
from pdt.audit.judging import Shown, cast, next_item
from pdt.audit.opening import AuditAsked, plan_queue, write_queue
from pdt.audit.queue import Queue
from pdt.audit.store.database import Database
from pdt.audit.store.people import Person, accept, invite, person_of
from pdt.audit.training import Training, read_training
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.judgments import Judgment, LaneFacts
from pdt.evaluation.lines.raw import Raw
from pdt.evaluation.lines.written import Written, WrittenLane
from tests.support.evidence_samples import document

KEY = b"audit key of tests, 32 bytes lon"
VERDICT = "a" * 64
PASSPHRASE = "correct horse battery"
EXAMPLES = {example.words: example for example in read_training().examples}
OWNED = {"oracle": ((1, 2), (3,), (4,)), "zero": ((1,), (), (3,))}
"""By condition and lane, the facts that the text states."""


def held_out(number: int) -> HeldOutDocument:
    """A document whose facts are told apart from those of the others."""
    plain = document(f"r{number}")
    facts = tuple(
        fact.model_copy(
            update={
                "statement": f"Town {number} paid {fact.id[1:]} crowns.",
                "hard_negative": f"Town {number} paid {fact.id[1:]}0 crowns.",
            }
        )
        for fact in plain.facts
    )
    return plain.model_copy(update={"facts": facts})


def small_raw(documents: int = 2) -> Raw:
    """Two conditions; a lane states its facts, one a paragraph, behind a sentence of no weight."""
    held = [held_out(number) for number in range(documents)]
    written = [
        Written(
            condition=condition,
            record_id=one.record_id,
            lane_of_plan=(0, 1, 2),
            unmoved_lane_of_plan=(0, 1, 2),
            lane_at_position=(0, 1, 2),
            lanes=tuple(
                WrittenLane(text=_text(one, facts), tokens=(1,), finish="length") for facts in lanes
            ),
        )
        for one in held
        for condition, lanes in OWNED.items()
    ]
    judgments = [
        Judgment(
            screen="exact",
            condition=condition,
            record_id=one.record_id,
            judged=LaneFacts.of_facts(stated, stated, [[False] * 3] * 4, [[False] * 3] * 4),
        )
        for one in held
        for condition, lanes in OWNED.items()
        for stated in [[[number in facts for facts in lanes] for number in (1, 2, 3, 4)]]
    ]
    return Raw(documents=held, written=written, judgments=judgments)


def _text(one: HeldOutDocument, facts: tuple[int, ...]) -> str:
    return "\n\n".join(
        ["This is about money.", *(f"Much happened. {one.facts[n - 1].statement}" for n in facts)]
    )


def truth(shown: Shown) -> tuple[Answer, int | None]:
    """What a person who reads well answers."""
    if shown.training:
        example = EXAMPLES[shown.words]
        return example.answer, example.sentence
    sentences = [sentence for paragraph in shown.paragraphs for sentence in paragraph]
    if shown.words in sentences:
        return Answer.YES, sentences.index(shown.words)
    return Answer.NO, None


EVERYTHING = AuditAsked()
SHORT = Training(examples=read_training().examples[:3])
"""A training round that takes a test no time."""


def small_queue(size: int = 2, asked: AuditAsked = EVERYTHING, training: Training = SHORT) -> Queue:
    """The queue of a verdict of `size` documents."""
    return plan_queue(small_raw(size), VERDICT, asked, training)


def small_audit(
    url: str | Path, size: int = 2, asked: AuditAsked = EVERYTHING, training: Training = SHORT
) -> Database:
    database = Database(str(url), new=True)
    write_queue(database, small_queue(size, asked, training), training, KEY)
    return database


def invited(database: Database, name: str, *roles: Role) -> Person:
    """An account whose invitation was taken up."""
    with database.writing() as session:
        token = invite(session, name, roles)
    with database.writing() as session:
        opened = accept(session, token, PASSPHRASE)
    with database.reading() as session:
        person = person_of(session, opened)
    assert person is not None
    return person


def team(database: Database) -> tuple[Person, Person, Person]:
    return (
        invited(database, "Ann", Role.ANNOTATOR),
        invited(database, "Bob", Role.ANNOTATOR),
        invited(database, "Cy", Role.ADJUDICATOR),
    )


def judge_all(
    database: Database,
    person: Person,
    *,
    slips: float = 0.0,
    seed: int = 0,
    most: int | None = None,
) -> int:
    """Judge until nothing is left; with a share of slips, after the training. Answers given."""
    draw, given = random.Random(seed), 0
    show: Callable[[Session, Person], Shown | None] = next_item
    count = cast
    if Role.ADJUDICATOR in person.roles and Role.ANNOTATOR not in person.roles:
        show, count = next_dispute, settle
    with database.writing() as session:  # one commit for all: what a test waits for is the disk
        while most is None or given < most:
            shown = show(session, person)
            if shown is None:
                break
            answer, sentence = truth(shown)
            if not shown.training and draw.random() < slips:
                answer, sentence = (Answer.YES, 0) if answer is Answer.NO else (Answer.NO, None)
            assert count(session, person, shown.ticket, shown.showing, answer, sentence, "")
            given += 1
    return given
