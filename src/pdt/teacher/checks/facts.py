"""The rules of Stage A. Paper: §4.2, Stage A."""

import re
from collections import Counter

from pdt.config import ContractLimits
from pdt.sources.article import Article
from pdt.teacher.checks.rules import Failures, shorten
from pdt.teacher.facts import Fact, FactInventory

LEAST_KEPT = 0.5
"""Of the words of a statement that its hard negative does not name as altered."""


def check_facts(
    article: Article, inventory: FactInventory, limits: ContractLimits, found: Failures
) -> None:
    if inventory.bundle_id != article.bundle_id:
        found.add("bundle_agrees", inventory.bundle_id, article.bundle_id)
    if not limits.facts.holds(len(inventory.facts)):
        found.add("fact_count", f"{len(inventory.facts)} facts", limits.facts)
    for fact_id, count in Counter(fact.id for fact in inventory.facts).items():
        if count > 1:
            found.add("fact_ids", f"{count} facts named {fact_id}", "one", fact=fact_id)
    _check_places(article, inventory.facts, found)
    _check_spread(article, inventory.facts, limits, found)
    source = fold(article.text)
    for fact in inventory.facts:
        _check_negative(fact, source, found)


def _check_places(article: Article, facts: tuple[Fact, ...], found: Failures) -> None:
    paragraphs = {paragraph.id: paragraph for _, paragraph in article.paragraphs()}
    for fact in facts:
        where = {"fact": fact.id, "paragraph": fact.paragraph_id}
        paragraph = paragraphs.get(fact.paragraph_id)
        if paragraph is None:
            found.add("fact_paragraph", "no such paragraph", "a paragraph of the article", **where)
            continue
        quote = fact.quote
        if not quote.matches(paragraph.text):
            there = paragraph.text[quote.start : quote.end]
            found.add(
                "fact_quote",
                f"the paragraph reads {shorten(there)}",
                shorten(quote.text),
                **where,
                start=quote.start,
                end=quote.end,
            )
        if strange := sorted(set(fact.citation_ids) - set(paragraph.citation_ids)):
            found.add(
                "fact_citations", f"{strange} not in the paragraph", paragraph.citation_ids, **where
            )
        elif paragraph.citation_ids and not fact.citation_ids:
            found.add("fact_citations", "none", f"some of {paragraph.citation_ids}", **where)


def _check_spread(
    article: Article, facts: tuple[Fact, ...], limits: ContractLimits, found: Failures
) -> None:
    section_of = {paragraph.id: section.path[:1] for section, paragraph in article.paragraphs()}
    used = {fact.paragraph_id for fact in facts} & section_of.keys()
    if len(used) < limits.fact_paragraphs:
        found.add(
            "fact_paragraph_spread", f"{len(used)} paragraphs", f"at least {limits.fact_paragraphs}"
        )
    sections = {section_of[paragraph] for paragraph in used}
    if len(sections) < limits.fact_sections:
        found.add(
            "fact_section_spread", f"{len(sections)} sections", f"at least {limits.fact_sections}"
        )


def _check_negative(fact: Fact, source: str, found: Failures) -> None:
    negative = fact.hard_negative
    if fold(negative.original) == fold(negative.replacement):
        found.add("negative_alters", "replacement equals original", "other words", fact=fact.id)
    if negative.original not in fact.statement:
        found.add(
            "negative_alters",
            f"{shorten(negative.original)} is not in the statement",
            "words of the fact's statement",
            fact=fact.id,
        )
    if negative.replacement not in negative.statement or negative.statement == fact.statement:
        found.add(
            "negative_alters",
            f"{shorten(negative.replacement)} is not in {shorten(negative.statement)}",
            "the replacement stands in the negative's statement",
            fact=fact.id,
        )
    rest = Counter(_words(fact.statement)) - Counter(_words(negative.original))
    kept = rest & Counter(_words(negative.statement))
    if kept.total() < LEAST_KEPT * rest.total() or not rest:
        found.add(
            "negative_alters_words",
            f"{kept.total()} of {rest.total()} other words stay",
            f"at least {LEAST_KEPT:.0%}, so that one thing is false and not the sentence another",
            fact=fact.id,
        )
    for false in false_forms(fact, [fact.quote.text]):
        if fold(false) in source:
            found.add("negative_not_in_source", shorten(false), "absent", fact=fact.id)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", fold(text))


def false_forms(fact: Fact, quotes: list[str]) -> list[str]:
    """The hard negative's statement, and each quote with the same words altered."""
    negative = fact.hard_negative
    altered = [
        quote.replace(negative.original, negative.replacement)
        for quote in quotes
        if negative.original in quote and negative.original != negative.replacement
    ]
    return sorted({negative.statement, *altered})


def fold(text: str) -> str:
    """Text with case and spacing made equal, for "appears in"."""
    return " ".join(text.casefold().split())
