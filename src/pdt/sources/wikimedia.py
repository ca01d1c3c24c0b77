"""What Wikimedia is asked for one revision, and the bundle that its answers make.

Three requests: the revision with wikitext and assessments, and its Talk page (action API), and the
Parsoid HTML (`/w/rest.php/v1/revision/ID/html`). RESTBase's `/api/rest_v1` is being retired and is
never used. Everything is kept as received; every identity the answers state must agree.

Paper: §4.1.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pdt.config import HtmlLimits
from pdt.contract import Contract, Id, Line, Sha256
from pdt.errors import SourceRefused
from pdt.parse import parse_json
from pdt.sources.assessments import (
    Assessments,
    TalkRevision,
    from_page_assessments,
    from_talk,
)
from pdt.sources.bundle import RAW_FILES, SourceBundle, describe_bundle
from pdt.sources.candidates import Candidate
from pdt.sources.reading import read_page
from pdt.terms import SourceOrigin

HOSTS = ("wikipedia.org", "wikimedia.org", "mediawiki.org")
"""These and their subdomains, and no other, are ever asked."""
FILE_NAMES = {
    **RAW_FILES,
    "revision": "revision.json",
    "talk": "talk.json",
    "http": "http.json",
}
RELICENSED = "2023-06-07"
"""From this day on Wikimedia publishes new revisions under CC BY-SA 4.0, before under 3.0."""
_KEPT_HEADERS = (
    "cache-control", "content-language", "content-length", "content-revision-id", "content-type",
    "date", "etag", "last-modified", "location", "retry-after", "server", "vary", "x-request-id",
)  # fmt: skip


@dataclass(frozen=True)
class HttpAnswer:
    """One HTTP answer, as received."""

    url: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    received_at: str
    """ISO 8601 with zone."""


class Exchange(Contract):
    """One request and the headers of its answer; a line of a bundle's http.json."""

    role: Id
    """The raw file that the body became."""
    url: Line
    """What was asked."""
    status: int
    """The final status, after redirects."""
    headers: dict[str, str]
    """Those that say what the body is; cookies and client addresses are never kept."""
    received_at: Line
    """When the answer was whole."""
    bytes: int
    """Size of the body."""
    sha256: Sha256
    """Digest of the body as received."""


def revision_url(base: str, revision: int, maxlag: int) -> str:
    return _api(
        base,
        maxlag,
        prop="revisions|info|pageassessments",
        revids=str(revision),
        rvprop="ids|timestamp|sha1|size|content|contentmodel|user|comment|tags",
        rvslots="main",
        inprop="url|talkid",
        palimit="500",
        pasubprojects="1",
    )


def talk_url(base: str, talk_page: int, maxlag: int) -> str:
    return _api(
        base,
        maxlag,
        prop="revisions",
        pageids=str(talk_page),
        rvprop="ids|timestamp|sha1|size|content|contentmodel",
        rvslots="main",
    )


def html_url(base: str, revision: int) -> str:
    return f"{base}/w/rest.php/v1/revision/{revision}/html"


def _api(base: str, maxlag: int, **query: str) -> str:
    fixed = {"action": "query", "format": "json", "formatversion": "2", "maxlag": str(maxlag)}
    return f"{base}/w/api.php?{urlencode({**fixed, **query})}"


def api_error(body: bytes) -> str | None:
    """The error inside an answer of the action API, which comes with status 200."""
    tree = _json(body, "the answer")
    error = tree.get("error") or (tree.get("errors") or [None])[0]
    if not isinstance(error, dict):
        return None
    return f"{error.get('code', 'unknown')}: {error.get('info') or error.get('text') or ''}".strip()


@dataclass(frozen=True)
class RevisionAnswer:
    """The parts of the action API's answer that we use, checked."""

    page_id: int
    title: str
    revision_id: int
    timestamp: str
    sha1: str
    wikitext: bytes
    talk_page: int | None
    assessments: Mapping[str, Any]


def parse_revision(body: bytes, candidate: Candidate) -> RevisionAnswer:
    """The candidate's revision out of the answer; every identity must be the candidate's."""
    where = f"{candidate.title} revision {candidate.revision_id}"
    if error := api_error(body):
        raise SourceRefused(where, f"was answered with an error: {error}", "Try again later.")
    query = _json(body, where).get("query") or {}
    if query.get("badrevids"):
        raise SourceRefused(where, "does not exist", "Choose another revision.")
    page, revision = _one_revision(query, where)
    if revision.get("texthidden") or revision.get("sha1hidden"):
        raise SourceRefused(where, "was hidden by the wiki", "Choose another revision.")
    found = (page.get("pageid"), page.get("title"), revision.get("revid"))
    wanted = (candidate.page_id, candidate.title, candidate.revision_id)
    if found != wanted:
        raise SourceRefused(
            where,
            f"is page, title and revision {found}, and the candidate says {wanted}",
            "Correct the candidate; dates and families were judged on another page.",
        )
    content = _content(revision)
    if content is None:
        raise SourceRefused(where, "came without wikitext", "Choose a wikitext page.")
    data = content.encode("utf-8", "surrogatepass")
    sha1 = str(revision.get("sha1") or "")
    if hashlib.sha1(data, usedforsecurity=False).hexdigest() != sha1:
        raise SourceRefused(
            where, "has another SHA-1 than its wikitext", "The answer is damaged. Take it again."
        )
    talk = page.get("talkid")
    said = page.get("pageassessments")
    return RevisionAnswer(
        page_id=candidate.page_id,
        title=candidate.title,
        revision_id=candidate.revision_id,
        timestamp=str(revision.get("timestamp") or ""),
        sha1=sha1,
        wikitext=data,
        talk_page=talk if isinstance(talk, int) and talk > 0 else None,
        assessments=said if isinstance(said, dict) else {},
    )


def assemble(
    candidate: Candidate, answers: Mapping[str, HttpAnswer], limits: HtmlLimits
) -> tuple[SourceBundle, dict[str, bytes]]:
    """The bundle of `revision`, `html` and (where there is one) `talk` answers."""
    revision = parse_revision(answers["revision"].body, candidate)
    where = f"{candidate.title} revision {candidate.revision_id}"
    html = answers["html"].body
    reading = read_page(html, limits, where=where)
    page = reading.page
    for what, found, wanted in (
        ("revision", page.revision_id, revision.revision_id),
        ("page", page.page_id, revision.page_id),
        ("wikitext SHA-1", page.sha1, revision.sha1),
    ):
        if found != wanted:
            raise SourceRefused(
                where,
                f"has HTML of {what} {found}, and wikitext of {wanted}",
                "HTML and wikitext must be of one revision. Take both again.",
            )
    talk, talk_text = _talk(answers.get("talk"), where)
    assessments = Assessments(
        talk=talk,
        assessments=tuple(from_page_assessments(revision.assessments) + from_talk(talk_text)),
    )
    raw = {
        "wikitext": revision.wikitext,
        "html": html,
        "assessments": _dump(assessments.model_dump(mode="json")),
        "citations": _dump([citation.model_dump() for citation in reading.citations]),
        "http": _dump([_exchange(role, answer) for role, answer in sorted(answers.items())]),
        **{role: answer.body for role, answer in answers.items() if role != "html"},
    }
    identity = {
        "origin": SourceOrigin.WIKIMEDIA,
        "project": candidate.project,
        "page_id": revision.page_id,
        "revision_id": revision.revision_id,
        "title": revision.title,
        "revised_at": revision.timestamp,
        "acquired_at": answers["html"].received_at,
        "licence": _licence(candidate, revision.timestamp),
    }
    return describe_bundle(identity, raw, names=FILE_NAMES), raw


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in _KEPT_HEADERS if name in lower}


def _exchange(role: str, answer: HttpAnswer) -> dict[str, Any]:
    return Exchange(
        role=role,
        url=answer.url,
        status=answer.status,
        headers=kept_headers(answer.headers),
        received_at=answer.received_at,
        bytes=len(answer.body),
        sha256=hashlib.sha256(answer.body).hexdigest(),
    ).model_dump(mode="json")


def _talk(answer: HttpAnswer | None, where: str) -> tuple[TalkRevision | None, str]:
    if answer is None:
        return None, ""
    if said := api_error(answer.body):
        raise SourceRefused(where, f"Talk page was answered with {said}", "Try again later.")
    try:
        page, revision = _one_revision(_json(answer.body, where).get("query") or {}, where)
        talk = TalkRevision.model_validate(
            {
                "page_id": page.get("pageid"),
                "revision_id": revision.get("revid"),
                "revised_at": revision.get("timestamp"),
            }
        )
    except ValueError as error:
        raise SourceRefused(where, "has a Talk answer we cannot read", "Take it again.") from error
    return talk, _content(revision) or ""


def _one_revision(query: Any, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    pages = query.get("pages") if isinstance(query, dict) else None
    page = pages[0] if isinstance(pages, list) and pages and isinstance(pages[0], dict) else {}
    revisions = page.get("revisions")
    if page.get("missing") or not isinstance(revisions, list) or len(revisions) != 1:
        raise SourceRefused(where, "is not in the answer", "Choose another revision.")
    return page, revisions[0]


def _content(revision: Mapping[str, Any]) -> str | None:
    main = (revision.get("slots") or {}).get("main") or {}
    if main.get("contentmodel") != "wikitext":
        return None
    content = main.get("content")
    return content if isinstance(content, str) else None


def _licence(candidate: Candidate, timestamp: str) -> dict[str, str]:
    version = "4.0" if timestamp >= RELICENSED else "3.0"
    return {
        "name": f"CC BY-SA {version}",
        "url": f"https://creativecommons.org/licenses/by-sa/{version}/",
        "attribution": f"Wikipedia contributors, “{candidate.title}”, revision "
        f"{candidate.revision_id}, "
        f"https://{candidate.project}/w/index.php?oldid={candidate.revision_id}",
    }


def _json(body: bytes, where: str) -> dict[str, Any]:
    try:
        tree = parse_json(body)
    except ValueError as error:
        raise SourceRefused(where, "was not answered in JSON", "Try again later.") from error
    return tree if isinstance(tree, dict) else {}


def _dump(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
