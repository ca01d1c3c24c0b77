"""Real articles beside the project (`../shared/wiki`), as answers of a wiki, for tests and tools.

Nothing of it is copied into the project; tests that need it are skipped where it is not there.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pdt.sources.candidates import Candidate
from pdt.sources.wikimedia import HttpAnswer

ROOT = Path(__file__).parents[2]
PLACES = (ROOT.parent / "shared" / "wiki", ROOT.parent.parent / "shared" / "wiki")
RECEIVED_AT = "2026-11-15T21:00:00+00:00"


def wiki_root() -> Path | None:
    return next((place for place in PLACES if (place / "manifest.json").is_file()), None)


WIKI = wiki_root()
needs_wiki = pytest.mark.skipif(WIKI is None, reason="the real articles are not in ../shared/wiki")


@dataclass(frozen=True)
class Material:
    """One revision as a wiki would answer for it."""

    name: str
    answers: dict[str, HttpAnswer]
    page: dict[str, Any]


def candidate_of(material: Material, **changes: Any) -> Candidate:
    """A candidate that a careless reviewer would write; tests change what they test."""
    data = {
        "title": material.page["title"],
        "page_id": material.page["pageid"],
        "revision_id": material.page["revisions"][0]["revid"],
        "topic": "event",
        "category": "battles",
        "event_end_year": 1900,
        "family_keys": [re.sub(r"[^a-z0-9]+", "-", material.page["title"].lower()).strip("-")],
        "reviewer": "a test",
        "reviewed_on": "2026-11-15",
    }
    return Candidate.model_validate({**data, **changes})


def captured_bundles() -> list[Path]:
    return sorted((WIKI / "bundles").iterdir()) if WIKI else []


def load_capture(directory: Path) -> Material:
    """A directory of `../shared/wiki/bundles`: revision, HTML, headers, sometimes a Talk page."""
    tree = json.loads((directory / "api-revisions.json").read_text(encoding="utf-8"))
    page = tree["query"]["pages"][0]
    answers = {
        "html": _answer("html", (directory / "parsoid.html").read_bytes()),
    }
    for talk in directory.glob("talk.*.wikitext.txt"):
        page["talkid"] = page["pageid"] + 10_000_000
        answers["talk"] = _answer(
            "talk", json.dumps(_talk(page["talkid"], int(talk.name.split(".")[1]), talk)).encode()
        )
    answers["revision"] = _answer("revision", json.dumps(tree).encode())
    return Material(directory.name, answers, page)


def load_enterprise(path: Path) -> list[Material]:
    """HTML and wikitext of one revision out of Wikimedia Enterprise's JSON."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for one in tree if isinstance(tree, list) else [tree]:
        body = one["article_body"]
        html = body["html"].encode()
        sha1 = re.search(rb'property="mw:revisionSHA1" content="([0-9a-f]+)"', html)
        page = {
            "pageid": one["identifier"],
            "ns": 0,
            "title": one["name"],
            "revisions": [
                {
                    "revid": one["version"]["identifier"],
                    "timestamp": one["date_modified"],
                    "sha1": sha1[1].decode() if sha1 else "",
                    "slots": {"main": {"contentmodel": "wikitext", "content": body["wikitext"]}},
                }
            ],
        }
        answers = {
            "revision": _answer("revision", json.dumps({"query": {"pages": [page]}}).encode()),
            "html": _answer("html", html),
        }
        found.append(Material(path.stem, answers, page))
    return found


def _talk(page_id: int, revision: int, path: Path) -> dict[str, Any]:
    content = path.read_text(encoding="utf-8")
    return {
        "query": {
            "pages": [
                {
                    "pageid": page_id,
                    "ns": 1,
                    "revisions": [
                        {
                            "revid": revision,
                            "timestamp": "2017-11-01T00:00:00Z",
                            "slots": {"main": {"contentmodel": "wikitext", "content": content}},
                        }
                    ],
                }
            ]
        }
    }


def _answer(role: str, body: bytes) -> HttpAnswer:
    return HttpAnswer(f"https://en.wikipedia.org/{role}", 200, {}, body, RECEIVED_AT)
