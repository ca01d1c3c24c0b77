"""A curated record from its three files: marks become quotes, headings become plan nodes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import AwareDatetime

from pdt.chronicle.article import ArticleDraft, DraftParagraph
from pdt.chronicle.markup import Source, publish
from pdt.chronicle.phrasing import Sentence
from pdt.chronicle.works import InventedWork, RealWork, Work
from pdt.contract import Contract, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.sources.bundle import Licence
from pdt.sources.quote import Quote, quote_at
from pdt.teacher.answer import PARAGRAPH_BREAK
from pdt.teacher.document import TaughtDocument
from pdt.teacher.facts import Fact, FactInventory, HardNegative
from pdt.terms import Alteration, FactRole, SourceOrigin

LICENCE = {
    "name": "Apache-2.0",
    "url": "https://www.apache.org/licenses/LICENSE-2.0",
    "attribution": "The pdt maintainers; an invented event.",
}
_MARK = re.compile(r"\[([a-z0-9:]+)\|([^\]|]+)\]")
_CITE = re.compile(r"\s*\[\^(\w+)\]")


@dataclass(frozen=True)
class CuratedRecord:
    """One record, whole."""

    name: str
    taught: TaughtDocument
    source: Source


class WikimediaRevision(Contract):
    """The revision that a real source was taken from, and on what terms."""

    page_id: int
    """Its page."""
    revision_id: int
    """Its `oldid`."""
    revised_at: AwareDatetime
    """When it was saved."""
    licence: Licence
    """Its terms, who is named, and what was left out."""


@dataclass(frozen=True)
class Marked:
    """Plain text and the marks that stood in it."""

    text: str
    marks: tuple[tuple[str, Quote], ...]


def curated_names() -> list[str]:
    """The records in the package."""
    folder = resources.files("pdt.records.curated")
    return sorted(path.name for path in folder.iterdir() if (path / "source.md").is_file())


def read_curated(name: str) -> CuratedRecord:
    """Read one record; its checks are `pdt record check`'s, as for any other document."""
    if name not in curated_names():
        known = ", ".join(curated_names())
        raise UsageError(f"There is no curated record {name!r}.\nRecords: {known}.")
    folder = resources.files("pdt.records.curated") / name
    texts = {
        file: (folder / file).read_text(encoding="utf-8")
        for file in ("source.md", "facts.txt", "answer.md")
    }
    revision = _read_revision(folder)
    draft, quotes = _read_source(texts["source.md"], _read_work if revision else _read_invented)
    identity = int.from_bytes(name.encode()[:4], "big")
    source = publish(
        draft,
        page_id=revision.page_id if revision else identity,
        revision_id=revision.revision_id if revision else 1,
        origin=SourceOrigin.CURATED,
        project="pdt.curated/1",
        licence=revision.licence.model_dump() if revision else LICENCE,
    )
    inventory = _read_facts(name, texts["facts.txt"], source, quotes)
    head, answer = _read_answer(name, texts["answer.md"], inventory)
    taught = parse_contract(
        TaughtDocument,
        {
            "record_id": f"curated-{name}",
            "split": head["split"],
            "family_key": f"curated:{name}",
            "category": head["category"],
            "article": source.article.model_dump(mode="json"),
            "inventory": inventory.model_dump(mode="json"),
            "answer": answer,
            "teacher": {
                "name": "hand",
                "version": "1",
                "settings": {"fictional": revision is None},
            },
        },
        where=f"curated record {name}",
        remedy="Correct its source.md, facts.txt or answer.md.",
    )
    return CuratedRecord(name, taught, source)


def unmark(text: str) -> Marked:
    """Take the marks out of a text and say where their words stand in what is left."""
    plain, marks, done = "", [], 0
    for match in _MARK.finditer(text):
        plain += text[done : match.start()]
        start = len(plain)
        plain += match.group(2)
        marks.append((match.group(1), start, len(plain)))
        done = match.end()
    plain += text[done:]
    return Marked(plain, tuple((key, quote_at(plain, start, end)) for key, start, end in marks))


def _read_revision(folder: Traversable) -> WikimediaRevision | None:
    """Whose words the source is, where it is not an invented event."""
    if not (folder / "revision.json").is_file():
        return None
    return WikimediaRevision.model_validate_json((folder / "revision.json").read_bytes())


def _read_source(
    text: str, read_work: Callable[[str], Work]
) -> tuple[ArticleDraft, dict[str, tuple[int, Quote]]]:
    """The article, and for each fact the paragraph (counted from 0) and the quote."""
    works: dict[str, Work] = {}
    sections: list[tuple[str | None, list[DraftParagraph]]] = [(None, [])]
    quotes: dict[str, tuple[int, Quote]] = {}
    title, count = "", 0
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        if block.startswith("[^"):
            works.update((work.key, work) for work in map(read_work, block.splitlines()))
        elif block.startswith("# "):
            title = block.removeprefix("# ")
        elif block.startswith("## "):
            sections.append((block.removeprefix("## "), []))
        else:
            paragraph, marks = _read_paragraph(" ".join(block.splitlines()))
            sections[-1][1].append(paragraph)
            quotes.update((key, (count, quote)) for key, quote in marks)
            count += 1
    for _, paragraphs in sections:
        for drafted in paragraphs:
            for place, named in drafted.cited.items():
                drafted.cited[place] = [works[work.key] for work in named]
    return ArticleDraft(title, sections, tuple(works.values())), quotes


def _read_paragraph(text: str) -> tuple[DraftParagraph, tuple[tuple[str, Quote], ...]]:
    pieces = _CITE.split(text)
    marked = unmark(_CITE.sub("", text))
    sentences = [Sentence(unmark(piece.strip()).text) for piece in pieces[::2] if piece.strip()]
    cited: dict[int, list[Work]] = {}
    place = -1
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            place += bool(piece.strip())
        else:
            cited.setdefault(place, []).append(InventedWork(piece, "", 0, "", ""))
    paragraph = DraftParagraph(sentences, cited)
    assert paragraph.text == marked.text, (paragraph.text, marked.text)
    return paragraph, marked.marks


def _read_work(line: str) -> Work:
    """A footnote in the words of the revision."""
    match = re.fullmatch(r"\[\^(\w+)\]: (.+)", line.strip())
    if match is None:
        raise ContractBroken(f"the footnote {line!r} cannot be read", "Write `[^key]: its text`.")
    return RealWork(*match.groups())


def _read_invented(line: str) -> Work:
    match = re.fullmatch(r"\[\^(\w+)\]: (.+?) \((\d{4})\)\. (.+?)\. (.+)\.", line.strip())
    if match is None:
        raise ContractBroken(
            f"the footnote {line!r} cannot be read", "Write `[^key]: Author (1900). Title. Press.`"
        )
    key, author, year, title, publisher = match.groups()
    return InventedWork(key, author, int(year), title, publisher)


def _read_facts(
    name: str, text: str, source: Source, quotes: Mapping[str, tuple[int, Quote]]
) -> FactInventory:
    paragraphs = [paragraph for _, paragraph in source.article.paragraphs()]
    facts = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, statement, alters, original, replacement = (part.strip() for part in line.split("|"))
        if key not in quotes or statement.count(original) != 1:
            raise ContractBroken(
                f"curated record {name}: fact {key} is not marked in the source, or its statement "
                f"does not hold {original!r} once",
                "Mark it in source.md and correct facts.txt.",
            )
        place, quote = quotes[key]
        facts.append(
            Fact(
                id=key,
                statement=statement,
                paragraph_id=paragraphs[place].id,
                quote=quote,
                citation_ids=paragraphs[place].citation_ids,
                hard_negative=HardNegative(
                    statement=statement.replace(original, replacement),
                    alters=Alteration(alters),
                    original=original,
                    replacement=replacement,
                ),
            )
        )
    return FactInventory(bundle_id=source.article.bundle_id, facts=tuple(facts))


def _read_answer(
    name: str, text: str, inventory: FactInventory
) -> tuple[dict[str, str], dict[str, object]]:
    """The head lines (`category: …`) and the answer."""
    opening, *lanes = re.split(r"^# Lane \d+\n", text, flags=re.MULTILINE)
    head = dict(line.split(": ", 1) for line in opening.strip().splitlines())
    parsed = [_read_lane(lane) for lane in lanes]
    found = {
        (key, lane): (node, quote)
        for lane, (_, _, marks) in enumerate(parsed)
        for key, node, quote in marks
    }
    plans = [{"nodes": nodes} for nodes, _, _ in parsed]
    sections = [{"paragraphs": paragraphs} for _, paragraphs, _ in parsed]
    roles = []
    for fact in inventory.facts:
        entry = []
        for lane in range(len(parsed)):
            role, quotes = FactRole.ABSENT, []
            for key, kind in ((fact.id, FactRole.OWNER), (f"ref:{fact.id}", FactRole.REFERENCE)):
                if (key, lane) in found:
                    role, quotes = kind, [found[key, lane][1].model_dump()]
            entry.append({"role": role, "quotes": quotes})
        roles.append({"fact_id": fact.id, "lanes": entry})
    dependencies = [
        _dependency(line, found)
        for line in (value for key, value in head.items() if key.startswith("depends"))
    ]
    for dependency in dependencies:
        receiver = dependency["receiver"]
        node = plans[receiver["lane"]]["nodes"][receiver["node"]]
        node["dependencies"] = [*node["dependencies"], dependency["id"]]
    return head, {
        "request": head["request"],
        "plans": plans,
        "sections": sections,
        "lane_at_position": [int(lane) for lane in head["order"].split()],
        "roles": roles,
        "dependencies": dependencies,
    }


def _read_lane(text: str) -> tuple[list[dict[str, Any]], list[str], list[tuple[str, int, Quote]]]:
    nodes: list[dict[str, Any]] = []
    paragraphs: list[str] = []
    marks: list[tuple[str, int, Quote]] = []
    start = 0
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        if block.startswith("## "):
            nodes.append(
                {
                    "objective": block.removeprefix("## "),
                    "owned_facts": [],
                    "reference_facts": [],
                    "dependencies": [],
                    "target_paragraphs": [],
                }
            )
            continue
        marked = unmark(" ".join(block.splitlines()))
        node = nodes[-1]
        node["target_paragraphs"].append(len(paragraphs))
        for key, quote in marked.marks:
            if re.fullmatch(r"f\d+", key):
                node["owned_facts"].append(key)
            elif key.startswith("ref:"):
                node["reference_facts"].append(key.removeprefix("ref:"))
            moved = Quote(start=start + quote.start, end=start + quote.end, text=quote.text)
            marks.append((key, len(nodes) - 1, moved))
        paragraphs.append(marked.text)
        start += len(marked.text) + len(PARAGRAPH_BREAK)
    return nodes, paragraphs, marks


def _dependency(line: str, found: Mapping[tuple[str, int], tuple[int, Quote]]) -> dict[str, Any]:
    """`d1: 0 -> 2 fact f3`, or `d2: 0 -> 1 coined c1 Lantern Pact of Lantern Pact; Rope Pact`."""
    match = re.fullmatch(r"(d\d+): (\d) -> (\d) (fact|coined) (\w+)(?: (.+?) of (.+))?", line)
    if match is None:
        raise ContractBroken(f"the dependency {line!r} cannot be read", "See another answer.md.")
    name, owner, receiver, kind, key, text, options = match.groups()
    ends = (
        {"owner": key, "receiver": f"ref:{key}"}
        if kind == "fact"
        else {"owner": key, "receiver": f"use:{name}"}
    )
    dependency: dict[str, Any] = {"id": name}
    for end, lane in (("owner", int(owner)), ("receiver", int(receiver))):
        node, quote = found[ends[end], lane]
        dependency[end] = {"lane": lane, "node": node, "quote": quote.model_dump()}
    if kind == "fact":
        dependency["fact_id"] = key
    else:
        alternatives = options.split("; ")
        bits = len(alternatives).bit_length() - 1
        dependency["coined"] = {
            "choice_id": key,
            "text": text,
            "entropy_bits": bits,
            "alternatives": alternatives,
        }
    return dependency
