"""The names of a document replaced by others that stand in no training text."""

import re
from dataclasses import dataclass

from pdt.chronicle.names import NAME_POOLS
from pdt.evaluation.alterations.alteration import draws
from pdt.sources.quote import Quote, quote_at
from pdt.teacher.answer import Answer, DependencyEnd, LaneRole, TargetSection
from pdt.teacher.document import TaughtDocument
from pdt.teacher.facts import Fact

UNSEEN = NAME_POOLS["unseen"]
"""Names of parts that every model knows, put together as no training text has them."""


@dataclass(frozen=True)
class Rename:
    """Places and surnames are others, the same ones in source, request and plans."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        places, surnames = names_of(document)
        if not places or len(places) > len(UNSEEN.places) or len(surnames) > len(UNSEEN.surnames):
            return None
        draw = draws(document, "rename")
        left = [name for name in UNSEEN.places if name not in places]
        new = dict(zip(places, draw.sample(left, len(places)), strict=True))
        left = [name for name in UNSEEN.surnames if name not in surnames and name not in new]
        new |= zip(surnames, draw.sample(left, len(surnames)), strict=True)
        return _Renamer(new).document(document)


def names_of(document: TaughtDocument) -> tuple[list[str], list[str]]:
    """Places and surnames: capitalized words that the article's prose has inside its sentences."""
    prose = " ".join(paragraph.text for _, paragraph in document.article.paragraphs())
    people = re.findall(r"\b([A-Z][a-z]+) ([A-Z][a-z]+)\b", prose)
    inside = re.findall(r"(?<=[a-z,;:] )[A-Z][a-z]+\b", prose)
    given, surnames = ({name[place] for name in people} for place in (0, 1))
    return sorted({*inside} - given - surnames), sorted(surnames - {"The"})


class _Renamer:
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._any = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def text(self, text: str) -> str:
        return self._any.sub(lambda found: self._names[found[1]], text)

    def quote(self, quote: Quote, before: str) -> Quote:
        """The same passage of the renamed text."""
        start = len(self.text(before[: quote.start]))
        return quote_at(self.text(before), start, start + len(self.text(quote.text)))

    def document(self, document: TaughtDocument) -> TaughtDocument:
        article = document.article
        prose = {paragraph.id: paragraph.text for _, paragraph in article.paragraphs()}
        renamed = article.model_copy(
            update={
                "title": self.text(article.title),
                "sections": tuple(
                    section.model_copy(
                        update={
                            "path": tuple(map(self.text, section.path)),
                            "paragraphs": tuple(
                                p.model_copy(update={"text": self.text(p.text)})
                                for p in section.paragraphs
                            ),
                        }
                    )
                    for section in article.sections
                ),
            }
        )
        facts = tuple(
            self._fact(fact, prose[fact.paragraph_id]) for fact in document.inventory.facts
        )
        return document.model_copy(
            update={
                "article": type(article).model_validate(renamed.model_dump()),
                "inventory": document.inventory.model_copy(update={"facts": facts}),
                "answer": self._answer(document.answer),
            }
        )

    def _fact(self, fact: Fact, paragraph: str) -> Fact:
        false = fact.hard_negative
        return fact.model_copy(
            update={
                "statement": self.text(fact.statement),
                "quote": self.quote(fact.quote, paragraph),
                "hard_negative": false.model_copy(
                    update={
                        "statement": self.text(false.statement),
                        "original": self.text(false.original),
                        "replacement": self.text(false.replacement),
                    }
                ),
            }
        )

    def _answer(self, answer: Answer) -> Answer:
        texts = [section.text for section in answer.sections]

        def role(lane: int, role: LaneRole) -> LaneRole:
            quotes = tuple(self.quote(quote, texts[lane]) for quote in role.quotes)
            return role.model_copy(update={"quotes": quotes})

        def end(end: DependencyEnd) -> DependencyEnd:
            return end.model_copy(update={"quote": self.quote(end.quote, texts[end.lane])})

        return answer.model_copy(
            update={
                "request": self.text(answer.request),
                "plans": tuple(
                    plan.model_copy(
                        update={
                            "nodes": tuple(
                                node.model_copy(update={"objective": self.text(node.objective)})
                                for node in plan.nodes
                            )
                        }
                    )
                    for plan in answer.plans
                ),
                "sections": tuple(
                    TargetSection(paragraphs=tuple(map(self.text, section.paragraphs)))
                    for section in answer.sections
                ),
                "roles": tuple(
                    entry.model_copy(
                        update={"lanes": tuple(role(k, r) for k, r in enumerate(entry.lanes))}
                    )
                    for entry in answer.roles
                ),
                "dependencies": tuple(
                    d.model_copy(update={"owner": end(d.owner), "receiver": end(d.receiver)})
                    for d in answer.dependencies
                ),
            }
        )
