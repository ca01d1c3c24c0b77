"""What an alteration is, and what several of them share.

It takes a taught document and gives one with the same facts, owners and record id, whose source,
request or plans are others. It is compiled again, so its plan targets are its own.

Paper: §7.1 (held-out documents); the alterations are ours.
"""

import random
import re
from typing import Protocol

from pdt.sources.article import Article, ArticleSection
from pdt.teacher.document import TaughtDocument


class Alteration(Protocol):
    """A function of a document and of the one that follows it among those judged."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        """The altered document; None where this one cannot be altered so."""
        ...


def draws(document: TaughtDocument, what: str) -> random.Random:
    """A stream that depends on the document's name alone."""
    return random.Random(f"pdt {what} {document.record_id}")


def with_sections(document: TaughtDocument, sections: list[ArticleSection]) -> TaughtDocument:
    """The same document over an article of these sections."""
    article = document.article
    return document.model_copy(
        update={
            "article": Article(
                bundle_id=article.bundle_id,
                title=article.title,
                sections=tuple(sections),
                citations=article.citations,
            )
        }
    )


def with_request(document: TaughtDocument, request: str) -> TaughtDocument:
    answer = document.answer.model_copy(update={"request": request})
    return document.model_copy(update={"answer": answer})


def event_of(document: TaughtDocument) -> str | None:
    """The event as the article's own prose names it: the siege of Oldham."""
    title = re.sub(r"\s*\(\d+\)$", "", document.article.title)
    found = re.search(rf"\bthe {re.escape(title)}\b", document.article.text, re.IGNORECASE)
    return None if found is None else f"the{found[0][3:]}"
