"""The sentences of an article that can be told alone, with what each one is about.

A sentence is told with its parentheses dropped and a leading pronoun replaced by the name it stands
for, where that is safe: the paragraph's first sentence names one subject, every sentence up to this
one keeps it, and the pronoun can stand for nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pdt.sentences.split import sentence_spans
from pdt.sentences.words import without_parentheses
from pdt.sources.article import Article, Paragraph

FEWEST_WORDS, MOST_WORDS = 8, 42
"""Of a told sentence: shorter ones are no prose (§7.2), longer ones are lists."""

_SMALL = {
    "a", "an", "and", "at", "by", "de", "del", "di", "du", "for", "from", "in", "la", "le", "of",
    "on", "the", "to", "und", "van", "von", "with",
}  # fmt: skip
_NAMED = re.compile(
    r"^(?P<name>[^,]{2,70}?)(?:, [^,]{1,60}(?:, [^,]{1,40})?,)? (?:is|was|are|were) (?P<rest>.+)$"
)
_KIND_ENDS = re.compile(
    r",|\b(?:and|as|at|based|born|by|directed|for|formed|founded|from|in|located|made|near|of|on|or|"
    r"published|released|situated|that|to|where|which|who|whose|with|written)\b"
)
_DANGLING = re.compile(
    r"(?i)^(?:"
    r"a few|additionally|after that|after this|also|among them|among these|an example|"
    r"another|as a result|as such|at that|at the same|at the time|at this|both|but|"
    r"by then|by this|consequently|during that|during this|earlier|eventually|for example|"
    r"for instance|for more|for this|from this|furthermore|hence|here|however|i|"
    r"in addition|in her|in his|in its|in their|in this|instead|it|its|later|like|"
    r"likewise|meanwhile|moreover|most of|nevertheless|on the other|on this|one example|"
    r"other|others|otherwise|she|he|his|her|similarly|since then|so|some|soon|such|that|"
    r"the former|the latter|the other|the same|the second|the two|their|then|there|"
    r"therefore|these|they|this|those|thus|to this|together|unlike|upon his|upon its|we|"
    r"with this|yet|you"
    r")\b"
)
_POINTS_BACK = re.compile(r"\b(?:the latter|the former|aforementioned|respectively|as follows)\b")
_BORN = re.compile(
    r"\bborn\b|\d{4}\s?[\u2013-]\s?(?:[A-Z][a-z]+ )?(?:\d{1,2}, )?(?:[A-Z][a-z]+ )?\d{4}\b"
)
_PERSON = re.compile(
    r"(?:er|or|ist|ian|man|woman|ess|eer|ant|poet|king|queen|pope|prince|saint|coach|critic|judge|"
    r"official|scholar|star|model|pilot|cleric|nun|monk|chef|athlete|hero|general|advocate|"
    r"executive)$"
)
_PRONOUN = re.compile(r"^(He|She|It|His|Her|Its)\b")

_LATER_PRONOUN = re.compile(
    r"^(?P<before>(?:After|As of|As|At|Before|By|During|For|From|In|On|Since|Until|When|While|"
    r"With) [^,]{2,60}, )(?P<pronoun>he|she|it|they|his|its|their)\b(?P<after>.+)$"
)


@dataclass(frozen=True)
class Claim:
    """One sentence of the source, and how it can be told anywhere."""

    paragraph_id: str
    start: int
    end: int
    """Its characters in the paragraph."""
    group: int
    """Which note, section or paragraph of the source it belongs to."""
    subject: str | None
    """The name of what the note is about, where its first sentence gives one."""
    statement: str
    """The sentence as it stands alone."""
    by_pronoun: str | None
    """The same sentence as it began in the source, for use right behind another of its subject."""
    heading: str | None
    """The heading above it."""
    opens: bool
    """The first sentence of its group: it says what the subject is."""


@dataclass(frozen=True)
class Subject:
    """What a paragraph is about."""

    name: str
    kind: str | None
    """Its noun, as in "is a 1994 American film": film."""
    pronoun: str | None
    """He, She or It, when the paragraph uses one of them alone."""


def read_claims(article: Article) -> list[Claim]:
    """Every sentence of the article that can be told alone, in the order of the source."""
    groups = _groups(article)
    headings = {p.id: s.path[-1] for s, p in article.paragraphs() if s.path}
    subjects = [subject_of([_sentences(p)[0] for p in group][:1], group) for group in groups]
    alone = len({subject.name for subject in subjects if subject}) <= 1 or _is_about_title(article)
    claims: list[Claim] = []
    for number, (group, subject) in enumerate(zip(groups, subjects, strict=True)):
        for place, paragraph in enumerate(group):
            found = _paragraph_claims(paragraph, number, place, subject, alone=alone)
            claims += [replace(claim, heading=headings.get(paragraph.id)) for claim in found]
    return _without_copies(claims)


def _groups(article: Article) -> list[list[Paragraph]]:
    """The notes of a source: its sections, or its paragraphs where nothing parts them."""
    filled = [list(section.paragraphs) for section in article.sections if section.paragraphs]
    if len(filled) > 1:
        return filled
    return [[paragraph] for group in filled for paragraph in group]


def _is_about_title(article: Article) -> bool:
    """Does its first paragraph name its title? Then every sentence may count on it."""
    first = next((paragraph.text for _, paragraph in article.paragraphs()), "")
    return article.title.casefold() in first.casefold()


def _sentences(paragraph: Paragraph) -> list[str]:
    return [paragraph.text[a:b] for a, b in sentence_spans(paragraph.text)]


def subject_of(first: Sequence[str], group: Sequence[Paragraph]) -> Subject | None:
    """Whom or what the first sentence names as its subject, or None."""
    found = _NAMED.match(without_parentheses(first[0])) if first else None
    if found is None or not _is_name(found["name"]):
        return None
    text = " ".join(p.text for p in group)
    used = {_nominative(word) for word in re.findall(r"\b(?:He|She|It|His|Her|Its)\b", text)}
    kind = _kind(found["rest"])
    pronoun = used.pop() if len(used) == 1 else None
    if pronoun in ("He", "She") and not (_BORN.search(first[0]) or _PERSON.search(kind or "")):
        pronoun = None
    return Subject(found["name"], kind, pronoun)


def _is_name(text: str) -> bool:
    words = re.sub(r"[\"']", "", text).split()
    return (
        0 < len(words) <= 8
        and words[-1].lower() not in _SMALL
        and all(w[0].isupper() or w[0].isdigit() or w in _SMALL for w in words if w)
        and not _DANGLING.match(text)
        and words[0]
        not in ("In", "On", "At", "By", "For", "From", "After", "During", "When", "With", "As")
        and text.count('"') % 2 == 0
    )


def _kind(rest: str) -> str | None:
    found = re.match(r"(?:a|an|the) (.+)$", rest)
    if found is None:
        return None
    words = _KIND_ENDS.split(found[1], maxsplit=1)[0].split()
    kind = re.sub(r"\W", "", words[-1]).lower() if words else ""
    return kind if kind.isalpha() and len(kind) > 2 else None


def _paragraph_claims(
    paragraph: Paragraph, group: int, place: int, subject: Subject | None, *, alone: bool
) -> list[Claim]:
    claims = []
    kept = subject is not None and place == 0
    for number, (start, end) in enumerate(sentence_spans(paragraph.text)):
        plain = without_parentheses(paragraph.text[start:end])
        opens = number == 0 and place == 0
        statement, kept = _standing_alone(plain, subject, kept=kept, opens=opens)
        if statement is None or not _is_plain(statement):
            continue
        if not alone and (subject is None or not _names(statement, subject.name)):
            continue
        claims.append(
            Claim(
                paragraph.id,
                start,
                end,
                group,
                subject.name if subject else None,
                statement,
                plain if statement != plain else None,
                None,
                opens,
            )
        )
    return claims


def _standing_alone(
    plain: str, subject: Subject | None, *, kept: bool, opens: bool
) -> tuple[str | None, bool]:
    """The sentence with its subject named, or None; and whether the paragraph keeps its subject."""
    if opens and subject is not None:
        return plain, kept
    if subject is not None and kept:
        found = _PRONOUN.match(plain)
        if found is not None and _nominative(found[1]) == subject.pronoun:
            name = _owning(subject.name) if found[1] in ("His", "Her", "Its") else subject.name
            if found[1] == "Her" and not re.match(r"Her [a-z]+", plain):
                return None, kept
            return name + plain[found.end() :], kept
        later = _LATER_PRONOUN.match(plain)
        if later is not None and _nominative(later["pronoun"].capitalize()) == subject.pronoun:
            named = _owning(subject.name) if later["pronoun"] in ("his", "its") else subject.name
            return later["before"] + named + later["after"], kept
        said = f"The {subject.kind} " if subject.kind else None
        if said and plain.startswith(said) and subject.kind != subject.name.split()[-1].lower():
            return f"{subject.name} {plain[len(said) :]}", kept
    if _DANGLING.match(plain) or _POINTS_BACK.search(plain) or _LATER_PRONOUN.match(plain):
        return None, False
    return plain, kept and subject is not None and _begins_with(plain, subject.name)


def _owning(name: str) -> str:
    return name + ("'" if name.endswith("s") else "'s")


def _nominative(pronoun: str) -> str:
    return {"His": "He", "Her": "She", "Its": "It"}.get(pronoun, pronoun)


def _begins_with(sentence: str, name: str) -> bool:
    words = sentence.split()
    return sentence.startswith(name) or (bool(words) and _bare(words[0]) == _bare(name.split()[-1]))


def _names(sentence: str, name: str) -> bool:
    """Is the subject named, by its whole name or by the last word of it?"""
    if name in sentence:
        return True
    last = _bare(name.split()[-1])
    return (
        len(last) > 3 and last[0].isupper() and last in {_bare(word) for word in sentence.split()}
    )


def _bare(word: str) -> str:
    return re.sub(r"['\u2019]s$|[^\w]", "", word)


def _is_plain(statement: str) -> bool:
    return (
        FEWEST_WORDS <= len(statement.split()) <= MOST_WORDS
        and statement[-1] == "."
        and (statement[0].isupper() or statement[0].isdigit() or statement[0] == '"')
        and statement.count('"') % 2 == 0
        and "(" not in statement
        and ")" not in statement
    )


def _without_copies(claims: Sequence[Claim]) -> list[Claim]:
    """No claim says what another one says word for word."""
    kept: list[Claim] = []
    for claim in claims:
        small = claim.statement.casefold()
        if not any(
            small in other.statement.casefold() or other.statement.casefold() in small
            for other in kept
        ):
            kept.append(claim)
    return kept
