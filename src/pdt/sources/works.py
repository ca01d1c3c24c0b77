"""From footnotes to cited works: several notes, one book.

A work is known by what identifies it best: DOI, ISBN, JSTOR and the like, then its address, then
author, title and year. Short footnotes ("Henze, p. 180") are folded into the full citation they
name; what names none is a work of its own, its page numbers aside.

Paper: Table 1.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pdt.sources.citations import CiteElement, Footnote

_DOI = re.compile(r"\b(10\.\d{4,9}/[^\s\"<>|}]+)")
_ISBN = re.compile(r"(?<![\d-])((?:97[89][- ]?)?\d(?:[- ]?\d){8}[- ]?[\dXx])(?![\d-])")
_PAGES = re.compile(
    r",?\s*\b(?:pp?|pgs?|pages?|vol|vols|chap|ch|ff?|no|n|sec|para|col|l)\b\.?\s*"
    r"[\divxlcIVXLC][\divxlcIVXLC,;:\s–—-]*(?:ff?\.?)?(?=\W|$)|,?\s*\b\d{1,4}\s*[–—-]\s*\d{1,4}\b"
    r"|,\s*\d{1,3}\.?$"
)
_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})[a-z]?\b")
_SHORT = re.compile(
    r"^(?P<names>[^\W\d_][\w'’.-]+(?:(?:,? (?:and|&) |, )[^\W\d_][\w'’.-]+){0,3})"
    r"(?:[,:.]? \(?(?P<year>1[0-9]{3}|20[0-9]{2})[a-z]?\)?)?(?P<rest>.*)$",
    re.S,
)
SHORTEST_FULL = 60
"""Characters; a note without page numbers and longer than this is a citation in full."""


@dataclass(frozen=True)
class Work:
    """One cited work with everything its citations say of it."""

    id: str
    key: str
    """What identified it, readable: `isbn:9781850655220`."""
    text: str
    """The fullest citation of it."""
    kind: str
    identifiers: tuple[str, ...]
    publisher: str
    container: str
    """The journal, newspaper or site it appeared in."""
    hosts: tuple[str, ...]


def fold_works(
    notes: Mapping[str, Footnote], wanted: Iterable[str], bibliography: Sequence[CiteElement]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Work]]:
    """For each wanted note the works it cites, and every such work by id."""
    fold = _Fold(notes, bibliography)
    of_note = {
        name: tuple(dict.fromkeys(work_id(key) for key in fold.keys_of(name)))
        for name in sorted(wanted)
    }
    used = {work for works in of_note.values() for work in works}
    works = {work_id(key): fold.work(key) for key in fold.sources}
    return of_note, {name: works[name] for name in sorted(used)}


def work_id(key: str) -> str:
    return f"w{hashlib.sha256(key.encode()).hexdigest()[:12]}"


class _Fold:
    """Keys of all notes, resolved once."""

    def __init__(self, notes: Mapping[str, Footnote], bibliography: Sequence[CiteElement]) -> None:
        self._notes = notes
        self._bibliography: dict[str, CiteElement] = {}
        for cite in [*bibliography, *(c for note in notes.values() for c in note.cites)]:
            if cite.anchor:
                self._bibliography.setdefault(cite.anchor, cite)
        self._identified: dict[int, list[str]] = {}
        self.sources: dict[str, list[CiteElement | Footnote]] = defaultdict(list)
        self._by_author: dict[str, set[str]] = defaultdict(set)
        self._alias: dict[str, str] = {}
        self._known: dict[int, str] = {}
        self._said: dict[str, str] = {}
        for cite in [*bibliography, *(c for note in notes.values() for c in note.cites)]:
            key = self._key_of_cite(cite)
            for author in _authors(cite):
                self._by_author[author].add(key)
        for note in notes.values():
            if not note.cites and not note.short_anchors and self._is_full(note):
                key = self._key_of_text(note)
                if (first := _first_name(note.text)) is not None:
                    self._by_author[first].add(key)

    def _identifiers(self, source: CiteElement | Footnote) -> list[str]:
        found = self._identified.get(id(source))
        if found is None:
            found = self._identified[id(source)] = _identifiers(source)
        return found

    def _is_full(self, note: Footnote) -> bool:
        long = len(_short_part(note.text)) > SHORTEST_FULL
        return long or bool(self._identifiers(note))

    def keys_of(self, name: str) -> list[str]:
        note, seen = self._notes[name], {name}
        while note.main is not None and note.main in self._notes and note.main not in seen:
            seen.add(note.main)
            note = self._notes[note.main]
        if note.cites:
            return [self._key_of_cite(cite) for cite in note.cites]
        anchored = [self._bibliography[a] for a in note.short_anchors if a in self._bibliography]
        if anchored:
            return [self._key_of_cite(cite) for cite in anchored]
        short = _short_part(note.text)
        if not self._is_full(note) and (key := self._by_short_form(short)) is not None:
            return [key]
        return [self._key_of_text(note)]

    def work(self, key: str) -> Work:
        sources = self.sources[key]
        cites = [source for source in sources if isinstance(source, CiteElement)]
        links = [link for source in sources for link in source.links]
        texts = [source.text for source in sources if source.text]
        return Work(
            id=work_id(key),
            key=key,
            text=max(texts, key=len, default=key),
            kind=next((cite.kind for cite in cites if cite.kind), ""),
            identifiers=tuple(
                dict.fromkeys(i for source in sources for i in self._identifiers(source))
            ),
            publisher=_field(cites, "publisher", "institution", "place"),
            container=_field(
                cites, "journal", "work", "website", "newspaper", "magazine", "series"
            ),
            hosts=tuple(dict.fromkeys(host for link in links if (host := _host(link)))),
        )

    def _key_of_cite(self, cite: CiteElement) -> str:
        if id(cite) in self._known:
            return self._known[id(cite)]
        if found := self._identifiers(cite):
            key = found[0]
            # Two identifiers of one work in one place tie its other citations to it.
            for other in found:
                key = self._alias.setdefault(other, key)
        else:
            key = _address(cite.links, cite.fields) or _words(cite)
        return self._keep(cite, key)

    def _key_of_text(self, note: Footnote) -> str:
        if id(note) in self._known:
            return self._known[id(note)]
        found = self._identifiers(note)
        words = _plain(note.text if self._is_full(note) else _short_part(note.text))
        # A footnote without words names nothing: it is a work of its own.
        key = f"text:{words}" if words else f"note:{note.id}"
        return self._keep(note, found[0] if found else _address(note.links, {}) or key)

    def _keep(self, source: CiteElement | Footnote, key: str) -> str:
        self._known[id(source)] = key
        self.sources[key].append(source)
        self._said.pop(key, None)
        return key

    def _by_short_form(self, text: str) -> str | None:
        """The one work that a short footnote's names, year and title words point at."""
        match = _SHORT.match(text)
        if match is None:
            return None
        first = re.split(r",? (?:and|&) |, ", match["names"])[0]
        works = set(self._by_author.get(_fold_name(first), ()))
        if match["year"] and len(works) > 1:
            works = {key for key in works if match["year"] in self._said_of(key)}
        said = _YEAR.sub("", _PAGES.sub("", text[len(first) :]))
        title = [word for word in _plain(said).split() if len(word) > 3]
        if len(works) > 1:
            works = {key for key in works if title and all(w in self._said_of(key) for w in title)}
        elif title:  # another title by the same author is another work
            works = {key for key in works if any(w in self._said_of(key) for w in title)}
        return next(iter(works)) if len(works) == 1 else None

    def _said_of(self, key: str) -> str:
        if key not in self._said:
            self._said[key] = " ".join(_plain(source.text) for source in self.sources[key])
        return self._said[key]


def _identifiers(source: CiteElement | Footnote) -> list[str]:
    """Strongest first. Only what is one work's own: an ISSN names a journal, not an article."""
    fields = source.fields if isinstance(source, CiteElement) else {}
    text = f"{source.text} {' '.join(unquote(link) for link in source.links)}"
    found: list[str] = []
    for name in ("doi", "jstor", "isbn", "pmid", "pmc", "hdl", "bibcode", "arxiv", "oclc"):
        value = next((v for k, v in fields.items() if k.lower() == name and v.strip()), "")
        if value:
            found.append(f"{name}:{_isbn13(value) if name == 'isbn' else _plain_id(value)}")
    if match := _DOI.search(text):
        found.append(f"doi:{_plain_id(match[1].rstrip('.,;)'))}")
    for link in source.links:
        parts = _split(unquote(link))
        if parts.netloc.endswith("jstor.org") and parts.path.startswith("/stable/"):
            found.append(f"jstor:{_plain_id(parts.path.removeprefix('/stable/'))}")
        elif "Special:BookSources/" in link:
            found.append(f"isbn:{_isbn13(unquote(link).rpartition('/')[2])}")
        elif parts.netloc.endswith("worldcat.org") and "/oclc/" in parts.path:
            found.append(f"oclc:{_plain_id(parts.path.rpartition('/')[2])}")
    if match := _ISBN.search(source.text):
        digits = re.sub(r"[^0-9Xx]", "", match[1])
        if "isbn" in source.text.lower() and len(digits) in (10, 13):
            found.append(f"isbn:{_isbn13(match[1])}")
    order = ("doi", "isbn", "jstor", "pmid", "pmc", "hdl", "bibcode", "arxiv", "oclc")
    unique = [i for i in dict.fromkeys(found) if i.partition(":")[2]]
    return sorted(unique, key=lambda i: order.index(i.partition(":")[0]))


def _isbn13(text: str) -> str:
    """Ten-digit numbers in their thirteen-digit form, so that both name one book."""
    digits = re.sub(r"[^0-9Xx]", "", text).upper()
    if len(digits) != 10:
        return digits
    body = f"978{digits[:9]}"
    check = (10 - sum(int(d) * (1, 3)[i % 2] for i, d in enumerate(body)) % 10) % 10
    return f"{body}{check}" if body.isdecimal() else digits


def _address(links: Iterable[str], fields: Mapping[str, str]) -> str | None:
    """A web page, without scheme, `www`, fragment and archive wrapper."""
    for link in [fields.get("url", ""), *links]:
        match = re.match(r"https?://web\.archive\.org/web/\d+\w*/(.+)", link)
        parts = _split(match[1] if match else link)
        host = _host(link)
        if parts.scheme not in ("http", "https") or not host or host.endswith("wikipedia.org"):
            continue
        query = parse_qs(parts.query)
        if host.startswith("books.google"):
            return f"google-books:{query['id'][0]}" if query.get("id") else None
        tail = f"?{parts.query}" if parts.query else ""
        return f"url:{host}{parts.path.rstrip('/')}{tail}"
    return None


def _split(link: str) -> SplitResult:
    """The parts of an address; one that is no address has none."""
    try:
        return urlsplit(link)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _host(link: str) -> str:
    match = re.match(r"https?://web\.archive\.org/web/\d+\w*/(.+)", link)
    host = _split(match[1] if match else link).netloc.lower().rpartition("@")[2]
    return host.partition(":")[0].removeprefix("www.")


def _words(cite: CiteElement) -> str:
    author = next(iter(_authors(cite)), "")
    title = _plain(cite.fields.get("title", ""))
    year = _YEAR.search(cite.fields.get("year", "") or cite.fields.get("date", "") or cite.text)
    if title:
        return f"title:{author}|{title}|{year[1] if year else ''}"
    return f"text:{_plain(cite.text)}"


def _authors(cite: CiteElement) -> list[str]:
    fields = {name.lower(): value for name, value in cite.fields.items()}
    for name in ("last", "last1", "author", "author1", "editor-last", "editor1-last", "editor"):
        if value := fields.get(name, "").strip():
            return [_fold_name(value.strip("[]").partition("|")[2] or value)]
    first = _first_name(cite.text)
    return [first] if first else []


def _first_name(text: str) -> str | None:
    """The family name a citation begins with: of `Henze, P.B.` as of `Paul B. Henze, Layers`."""
    start = re.split(r"[,:(;]", text, maxsplit=1)[0].strip().rstrip(".")
    words = start.split()
    if not 1 <= len(words) <= 5 or len(start) == len(text):
        return None
    return _fold_name(words[-1]) or None


def _fold_name(name: str) -> str:
    """The family name alone: `Henze, P.B.` and `Paul Henze` are `henze`."""
    family, comma, _ = name.partition(",")
    words = _plain(family).split()
    return (words[-1] if words and not comma else "".join(words[-1:])) if words else ""


def _short_part(text: str) -> str:
    """A short footnote without the remark that may follow its page number."""
    pages = _PAGES.search(text)
    return text[: pages.end()] if pages and pages.start() <= SHORTEST_FULL else text


def _plain(text: str) -> str:
    """Lower case, letters and digits, no page numbers: what two spellings share."""
    text = _PAGES.sub(" ", text)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c)).casefold()
    return " ".join(re.findall(r"[^\W_]+", text))


def _plain_id(text: str) -> str:
    return re.sub(r"\s+", "", unquote(text)).casefold()


def _field(cites: Iterable[CiteElement], *names: str) -> str:
    for cite in cites:
        for name in names:
            if value := cite.fields.get(name, "").strip():
                return value
    return ""
