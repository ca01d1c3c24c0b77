"""The extractive teacher: facts are source sentences, sections are those sentences as prose.

It needs no language model and gives the same answer every time. Its answers pass the same checks
as anybody's; a draw that breaks a rule is drawn again.

Paper: §4.2.
"""

import random
from collections.abc import Sequence
from functools import lru_cache

from pdt.chronicle.dice import dice
from pdt.config import PdtConfig
from pdt.extractive.alter import altered, has_value, names_in
from pdt.extractive.claims import Claim, read_claims
from pdt.extractive.compose import Draft, draft_answer
from pdt.extractive.divide import draw_division
from pdt.extractive.request import draw_request
from pdt.sources.article import Article
from pdt.sources.quote import quote_at
from pdt.teacher.answer import Answer
from pdt.teacher.checks import CheckFailure, Failures, check_facts
from pdt.teacher.document import TaughtBy
from pdt.teacher.facts import Fact, FactInventory
from pdt.teacher.interface import Attempt, Taught, TeachingSource, Untaught, as_document
from pdt.teacher.prompted import Check
from pdt.terms import TeacherPass
from pdt.tokenizer import StudentTokenizer

NAME, VERSION = "extractive", "3"


class ExtractiveTeacher:
    """Teaches any article of plain sentences."""

    def __init__(self, config: PdtConfig, tokenizer: StudentTokenizer, check: Check) -> None:
        self.config = config
        self.dials = config.teacher.extractive
        self.tokenizer = tokenizer
        self.check = check
        self._last = lru_cache(maxsize=8)(self._draw)

    def extract_facts(self, source: TeachingSource) -> Taught[FactInventory] | Untaught:
        inventory = self.inventory_of(source)
        found = Failures(source.record_id)
        check_facts(source.article, inventory, self.config.records.limits, found)
        if found.found:
            return Untaught(TeacherPass.EXTRACT_FACTS, tuple(found.found))
        return Taught(inventory)

    def compose_answer(
        self, source: TeachingSource, inventory: FactInventory
    ) -> Taught[Answer] | Untaught:
        drawn = self._last(source)
        if isinstance(drawn, Untaught):
            return drawn
        return Taught(drawn.answer)

    def identity(self, source: TeachingSource, attempts: tuple[Attempt, ...]) -> TaughtBy:
        drawn = self._last(source)
        settings: dict[str, object] = {"seed": self.dials.seed, "kind": source.category}
        if isinstance(drawn, Draft):
            settings |= {"division": drawn.division, "styles": list(drawn.styles)}
        return TaughtBy.model_validate({"name": NAME, "version": VERSION, "settings": settings})

    def inventory_of(self, source: TeachingSource) -> FactInventory:
        """Stage A: the claims that hold a value, each with one altered."""
        article = source.article
        stream = dice(NAME, VERSION, self.dials.seed, source.record_id, "facts")
        claims = self._claims(article)
        facts = []
        for number, claim in enumerate(claims):
            others = [
                name for other in claims if other is not claim for name in names_in(other.statement)
            ]
            negative = altered(stream, claim.statement, others, article.text)
            if negative is None:
                continue
            facts.append(_fact(f"f{number + 1}", claim, article, negative))
        return FactInventory(bundle_id=article.bundle_id, facts=tuple(facts))

    def _claims(self, article: Article) -> list[Claim]:
        """At most as many as the contract allows; the longest notes give up their last ones."""
        claims = [claim for claim in read_claims(article) if has_value(claim.statement)]
        while len(claims) > self.config.records.limits.facts.max:
            sizes = [sum(other.group == claim.group for other in claims) for claim in claims]
            longest = max(sizes)
            claims.pop(max(n for n, size in enumerate(sizes) if size == longest))
        return claims

    def _draw(self, source: TeachingSource) -> "Draft | Untaught":
        inventory = self.inventory_of(source)
        places = {
            (claim.paragraph_id, claim.start): claim for claim in self._claims(source.article)
        }
        claims = [places[fact.paragraph_id, fact.quote.start] for fact in inventory.facts]
        failures: Sequence[CheckFailure] = ()
        for attempt in range(self.dials.draws):
            stream = dice(NAME, VERSION, self.dials.seed, source.record_id, "answer", attempt)
            draft = self._attempt(stream, source, inventory, claims, last=attempt)
            if draft is None:
                continue
            by = TaughtBy(name=NAME, version=VERSION)
            failures = self.check(as_document(source, inventory, draft.answer, by))
            if not failures:
                return draft
        if not failures:
            found = Failures(source.record_id)
            found.add(
                "plan_nodes", "no division fits the source", self.config.records.limits.plan_nodes
            )
            failures = found.found
        return Untaught(TeacherPass.COMPOSE_ANSWER, tuple(failures))

    def _attempt(
        self,
        stream: random.Random,
        source: TeachingSource,
        inventory: FactInventory,
        claims: Sequence[Claim],
        *,
        last: int,
    ) -> Draft | None:
        # The division belongs to the document, so that a hard one is not drawn away at once.
        names = list(self.dials.divisions)
        fixed = dice(NAME, VERSION, self.dials.seed, source.record_id, "division", last // 6)
        name = fixed.choices(names, [self.dials.divisions[n] for n in names])[0]
        limits = self.config.records.limits.plan_nodes
        division = draw_division(
            stream,
            name,
            claims,
            nodes=(limits.min, limits.max),
            node_facts=self.dials.node_facts,
        )
        if division is None:
            return None
        request = draw_request(stream, division)
        return draft_answer(
            stream, source.article, inventory, claims, division, request, self.dials, self.tokenizer
        )


def _fact(name: str, claim: Claim, article: Article, negative: object) -> Fact:
    text = next(p.text for _, p in article.paragraphs() if p.id == claim.paragraph_id)
    citations = next(p.citation_ids for _, p in article.paragraphs() if p.id == claim.paragraph_id)
    return Fact.model_validate(
        {
            "id": name,
            "statement": claim.statement,
            "paragraph_id": claim.paragraph_id,
            "quote": quote_at(text, claim.start, claim.end),
            "citation_ids": citations,
            "hard_negative": negative,
        }
    )
