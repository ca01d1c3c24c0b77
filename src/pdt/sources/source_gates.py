"""Whole-article source gates: one function per row of Table 1.

A row returns what was measured, what is required, whether it holds, and the evidence. Nothing is
trimmed to fit: an article is accepted whole or rejected whole, with every reason.

Paper: §4.1, Table 1.
"""

import calendar
import datetime
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from pdt.config import PdtConfig, SourceGateLimits
from pdt.sources.candidates import Candidate
from pdt.sources.data import list_versions
from pdt.sources.reading import SourceReading
from pdt.sources.scholarly import scholarly_reason
from pdt.sources.splits import SplitLedger
from pdt.sources.templates import maintenance_in
from pdt.sources.verdict import Requirement, SourceGate, SourceVerdict
from pdt.terms import Topic
from pdt.tokenizer import StudentTokenizer

WANTED = (Topic.EVENT, Topic.PROCESS)
_LIST_TITLE = re.compile(
    r"(?i)^(?:list|lists|timeline|outline|index|chronology|bibliography|glossary)s? of\b"
)
_LIFE = re.compile(
    r"(?:^|\b)(?:\d+s?(?: BC)?|year of birth[\w ]*) (?:births|deaths)$|^Living people"
)


@dataclass(frozen=True)
class Judged:
    """A reading with the counts that several rows share."""

    reading: SourceReading
    candidate: Candidate | None
    ledger: SplitLedger | None
    config: PdtConfig
    tokenizer: StudentTokenizer

    @property
    def limits(self) -> SourceGateLimits:
        return self.config.sources.source_gates

    @cached_property
    def tokens(self) -> int:
        return len(self.tokenizer.encode(self.reading.article.text).ids)

    @cached_property
    def substantive(self) -> dict[str, int]:
        """Substantive paragraphs by id, with their tokens."""
        counted = {
            paragraph.id: len(self.tokenizer.encode(paragraph.text).ids)
            for _, paragraph in self.reading.article.paragraphs()
        }
        return {name: n for name, n in counted.items() if n >= self.limits.paragraph_tokens}


def judge_source(
    reading: SourceReading,
    candidate: Candidate | None,
    ledger: SplitLedger | None,
    config: PdtConfig,
    tokenizer: StudentTokenizer,
) -> SourceVerdict:
    """Every row of Table 1 for one article."""
    judged = Judged(reading, candidate, ledger, config, tokenizer)
    rows = tuple(row(judged) for row in ROWS)
    return SourceVerdict(
        bundle_id=reading.bundle.bundle_id,
        title=reading.bundle.title,
        accepted=all(row.passed for row in rows),
        source_gates=rows,
        list_versions=list_versions(),
        left_out=dict(reading.html.prose.left_out.most_common()),
        tokenizer_sha256=tokenizer.sha256,
    )


def topic_and_age(judged: Judged) -> SourceGate:
    """English main-namespace event or process, no redirect or disambiguation, long ended."""
    page, bundle, candidate = judged.reading.html.page, judged.reading.bundle, judged.candidate
    lives = [name for name in page.categories if _LIFE.search(name)]
    signs = [f"category {name}" for name in lives[:3]]
    if _LIST_TITLE.search(bundle.title):
        signs.append(f"title {bundle.title}")
    reviewed = candidate is not None and candidate.revision_id == bundle.revision_id
    said = f"{candidate.topic} (by {candidate.reviewer})" if candidate else "not reviewed"
    return _row(
        "topic_and_age",
        _need("language", page.language, "en", page.language == "en"),
        _need("namespace", page.namespace, "0, the main one", page.namespace == 0),
        _need("redirect", page.is_redirect, "no redirect", not page.is_redirect),
        _need(
            "disambiguation",
            page.is_disambiguation,
            "no disambiguation page",
            not page.is_disambiguation,
        ),
        _need(
            "topic",
            said,
            "event or process, as reviewed at this revision",
            reviewed and candidate is not None and candidate.topic in WANTED,
        ),
        _need("person_or_list", len(signs), "0 signs of a biography or list", not signs, signs),
        _age(judged),
    )


def _age(judged: Judged) -> Requirement:
    years, acquired = judged.limits.age_years, judged.reading.bundle.acquired_at.date()
    required = f"ended at least {years} years before {acquired}"
    candidate = judged.candidate
    if candidate is None:
        return _need("age", "not reviewed", required, False)
    # A year alone leaves the day open: the event is taken to have ended on its last day.
    end = candidate.event_end_date or _last_day(candidate.event_end_year)
    latest = _years_before(acquired, years)
    shown = str(candidate.event_end_date or candidate.event_end_year)
    return _need("age", f"ended {shown}", required, end is None or end <= latest)


def assessment(judged: Judged) -> SourceGate:
    """A class from a history-oriented project, and no maintenance template."""
    said, origin = judged.reading.assessments, judged.reading.bundle.origin
    wanted = judged.limits.assessment_classes
    history = said.history(origin)
    good = [one for one in history if one.quality in wanted]
    found = maintenance_in(list(judged.reading.templates))
    counted = {family: Counter(names) for family, names in found.items()}
    shown = [
        f"{family}: " + ", ".join(f"{name} ×{n}" for name, n in sorted(names.items()))
        for family, names in sorted(counted.items())
    ]
    return _row(
        "assessment",
        _need(
            "history_project",
            ", ".join(dict.fromkeys(f"{o.project} {o.quality}" for o in history)) or "none",
            f"{', '.join(wanted)} from a history-oriented WikiProject",
            bool(good),
            [f"conflict: {line}" for line in said.conflicts()]
            + ([f"Talk revision {said.talk.revision_id}"] if said.talk else []),
        ),
        _need(
            "maintenance",
            ", ".join(sorted(found)) or "none",
            "no citation, neutrality, accuracy, original-research, cleanup or hoax template",
            not found,
            shown,
        ),
    )


def complete_body(judged: Judged) -> SourceGate:
    """Length in the student's tokens, substantive sections and paragraphs, everything rendered."""
    limits, article = judged.limits, judged.reading.article
    length = judged.config.records.limits.source_tokens
    sections: dict[str, int] = {}
    for section, paragraph in article.paragraphs():
        if section.path and paragraph.id in judged.substantive:
            sections[section.path[0]] = sections.get(section.path[0], 0) + 1
    unresolved = Counter(judged.reading.html.prose.unresolved)
    return _row(
        "complete_body",
        _need("tokens", judged.tokens, f"{length}", length.holds(judged.tokens)),
        _need(
            "sections",
            len(sections),
            f"at least {limits.sections} substantive sections",
            len(sections) >= limits.sections,
            [f"{name}: {count} paragraphs" for name, count in sections.items()],
        ),
        _need(
            "paragraphs",
            len(judged.substantive),
            f"at least {limits.paragraphs} of {limits.paragraph_tokens} tokens or more",
            len(judged.substantive) >= limits.paragraphs,
        ),
        _need(
            "rendered",
            sum(unresolved.values()),
            "0 templates left unexpanded in the prose",
            not unresolved,
            [f"{name} ×{count}" for name, count in unresolved.most_common(5)],
        ),
    )


def citations(judged: Judged) -> SourceGate:
    """Occurrences, distinct works, scholarly works, coverage and concentration."""
    limits, html, works = judged.limits, judged.reading.html, _works(judged)
    total = len(html.occurrences)
    cited = [name for name, p in html.paragraphs if name in judged.substantive and html.cited_in(p)]
    coverage = len(cited) / len(judged.substantive) if judged.substantive else 0.0
    uncited = [name for name in judged.substantive if name not in set(cited)]
    top = max(works, key=lambda work: (work.occurrences, work.text), default=None)
    share = top.occurrences / total if top and total else 0.0
    scholarly = [work for work in works if work.reason]
    return _row(
        "citations",
        _need(
            "occurrences",
            total,
            f"at least {limits.citation_occurrences}",
            total >= limits.citation_occurrences,
        ),
        _need(
            "works", len(works), f"at least {limits.cited_works}", len(works) >= limits.cited_works
        ),
        _need(
            "scholarly",
            len(scholarly),
            f"at least {limits.scholarly_works} scholarly or institutional",
            len(scholarly) >= limits.scholarly_works,
            [f"{work.text[:80]}: {work.reason}" for work in scholarly],
        ),
        _need(
            "coverage",
            round(coverage, 4),
            f"at least {limits.cited_paragraphs:g} of substantive paragraphs",
            coverage >= limits.cited_paragraphs,
            [f"without a citation: {', '.join(uncited)}"] if uncited else [],
        ),
        _need(
            "top_work",
            round(share, 4),
            f"at most {limits.top_work:g} of occurrences",
            total > 0 and share <= limits.top_work,
            [f"{top.text[:80]}: {top.occurrences} of {total}"] if top else [],
        ),
    )


@dataclass(frozen=True)
class CitedWork:
    """A work as the row of citations counts it."""

    id: str
    text: str
    occurrences: int
    reason: str | None


def _works(judged: Judged) -> list[CitedWork]:
    return cited_works(judged.reading)


def cited_works(reading: SourceReading) -> list[CitedWork]:
    """Every cited work, most cited first, with the reason it counts as scholarly."""
    html = reading.html
    return [
        CitedWork(name, html.works[name].text, count, scholarly_reason(html.works[name]))
        for name, count in html.occurrences_of_work.most_common()
    ]


def split_integrity(judged: Judged) -> SourceGate:
    """The article's family is in one split, and was before anyone taught it."""
    candidate, ledger = judged.candidate, judged.ledger
    if candidate is None or ledger is None:
        measured: JsonValue = "no candidate" if candidate is None else "no sealed splits"
        return _row(
            "split_integrity", _need("one_split", measured, "a family in one sealed split", False)
        )
    family = ledger.family_of(candidate)
    conflict = ledger.conflict_of(candidate)
    return _row(
        "split_integrity",
        _need(
            "one_split",
            conflict or (f"{family.split} ({family.id})" if family else "in no family"),
            "a family in one sealed split",
            family is not None and conflict is None,
            [f"sealed {ledger.digest[:16]}"],
        ),
    )


ROWS = (topic_and_age, assessment, complete_body, citations, split_integrity)


def _row(name: str, *requirements: Requirement) -> SourceGate:
    return SourceGate.model_validate({"row": name, "requirements": requirements})


def _need(
    name: str, measured: JsonValue, required: str, passed: bool, evidence: list[str] | None = None
) -> Requirement:
    return Requirement(
        name=name,
        measured=measured,
        required=required,
        passed=passed,
        evidence=tuple(evidence or ()),
    )


def _last_day(year: int) -> datetime.date | None:
    """None for years before our era: they are older than any limit."""
    return datetime.date(year, 12, 31) if year >= 1 else None


def _years_before(day: datetime.date, years: int) -> datetime.date:
    year = day.year - years
    return day.replace(year=year, day=min(day.day, calendar.monthrange(year, day.month)[1]))
