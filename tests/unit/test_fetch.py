"""Fetching from a real server that fails in every known way, and its offline twin."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdt.config import SourcesConfig, load_config
from pdt.errors import UsageError
from pdt.sources.bundle import read_bundle
from pdt.sources.candidates import Candidate
from pdt.sources.client import PoliteClient, base_url, is_wikimedia, retry_after_seconds, user_agent
from pdt.sources.fetch import BUNDLES, FAILED, FetchResult, fetch_all, read_failures
from pdt.sources.recorded import Recording
from pdt.sources.wikimedia import HttpAnswer
from tests.support.parsoid_samples import as_json, mark, note, notes, page, section, sha1_of
from tests.support.wiki_material import RECEIVED_AT, Material, candidate_of
from tests.support.wiki_server import Fault, WikiServer, serve

pytestmark = pytest.mark.paper("§4.1")
FAST = [
    "sources.fetch.contact=test@example.org",
    "sources.fetch.requests_per_second=10000",
    "sources.fetch.backoff_seconds=0.01",
    "sources.fetch.timeout_seconds=5",
    "sources.fetch.attempts=4",
]


def config(*more: str) -> SourcesConfig:
    return load_config("canonical", overrides=[*FAST, *more]).sources


def material(number: int = 7, **changes: Any) -> Material:
    """One small revision as a wiki would answer for it."""
    text = changes.pop("text", f"'''Siege {number}''' {{{{citation needed}}}} été")
    sha1 = changes.pop("sha1", sha1_of(text))
    body = section(f"<p>The siege of {number}.{mark('cite_note-1')}</p>", heading="Course")
    body += section(
        notes(note("cite_note-1", "Henze, P. (1990). <i>Sieges</i>. Yale University Press.")),
        heading="References",
    )
    html = page(
        body,
        title=f"Siege {number}",
        revision=changes.pop("html_revision", number),
        **{"mw:revisionSHA1": sha1_of(text)},
    )
    data = {
        "pageid": 70,
        "ns": 0,
        "title": f"Siege {number}",
        "talkid": 700 + number,
        "pageassessments": {"Military history": {"class": "FA"}, "Egypt": {"class": "B"}},
        "revisions": [
            {
                "revid": number,
                "timestamp": "2024-02-03T04:05:06Z",
                "sha1": sha1,
                "slots": {"main": {"contentmodel": "wikitext", "content": text}},
            }
        ],
        **changes,
    }
    banner = (
        "{{WikiProject banner shell|class=GA|{{WikiProject Military history|class=A}}"
        "{{WikiProject History}}}}"
    )
    talk = {
        "pageid": 700 + number,
        "revisions": [
            {
                "revid": 9000 + number,
                "timestamp": "2024-01-01T00:00:00Z",
                "slots": {"main": {"contentmodel": "wikitext", "content": banner}},
            }
        ],
    }
    bodies = {
        "revision": as_json({"query": {"pages": [data]}}),
        "html": html,
        "talk": as_json({"query": {"pages": [talk]}}),
    }
    answers = {role: HttpAnswer("", 200, {}, body, RECEIVED_AT) for role, body in bodies.items()}
    return Material(f"Siege {number}", answers, data)


@pytest.fixture
def wiki() -> Iterator[WikiServer]:
    with serve([material(n) for n in range(1, 9)]) as server:
        yield server


def fetch(
    wiki: WikiServer,
    out: Path,
    numbers: Any = (1,),
    settings: SourcesConfig | None = None,
    known: Recording | None = None,
) -> FetchResult:
    settings = settings or config()
    wanted = [candidate_of(wiki.by_revision[n], page_id=70) for n in numbers]
    client = PoliteClient(settings.fetch, test_server=wiki.url, known=known)
    try:
        return fetch_all(wanted, out, client, lambda project: wiki.url, settings)
    finally:
        client.close()


def test_a_revision_becomes_one_whole_bundle(wiki: WikiServer, tmp_path: Path) -> None:
    (directory,) = fetch(wiki, tmp_path).taken
    bundle = read_bundle(directory)
    assert (bundle.revision_id, bundle.page_id, bundle.title) == (1, 70, "Siege 1")
    assert (directory / "parsoid.html").read_bytes() == wiki.by_revision[1].answers["html"].body
    assert bundle.licence.name == "CC BY-SA 4.0" and "revision 1" in bundle.licence.attribution
    said = json.loads((directory / "assessments.json").read_text())
    assert said["talk"]["revision_id"] == 9001
    assert {(a["project"], a["quality"], a["source"]) for a in said["assessments"]} == {
        ("Military history", "FA", "page_assessments"),
        ("Egypt", "B", "page_assessments"),
        ("Military history", "A", "talk"),
        ("History", "GA", "talk"),
    }
    exchanges = json.loads((directory / "http.json").read_text())
    assert {e["role"]: e["status"] for e in exchanges} == {
        "html": 200,
        "revision": 200,
        "talk": 200,
    }
    assert all("set-cookie" not in e["headers"] for e in exchanges)
    for _, headers in wiki.seen:
        assert (
            headers["user-agent"].startswith("pdt/") and "test@example.org" in headers["user-agent"]
        )


TEMPORARY = {
    "429 with Retry-After": Fault(429, {"Retry-After": "0"}),
    "500": Fault(500, body=b"oops"),
    "503 with a date": Fault(503, {"Retry-After": "Sat, 14 Nov 2026 00:00:00 GMT"}),
    "a cut body": Fault(cut=True),
    "maxlag inside a 200": Fault(
        body=as_json({"error": {"code": "maxlag", "info": "5 s"}}), headers={"Retry-After": "0"}
    ),
}


@pytest.mark.parametrize("fault", TEMPORARY.values(), ids=TEMPORARY.keys())
def test_what_fails_for_now_is_asked_again(wiki: WikiServer, tmp_path: Path, fault: Fault) -> None:
    wiki.faults["revision"] = [fault, fault]
    result = fetch(wiki, tmp_path)
    assert len(result.taken) == 1
    assert wiki.roles().count("revision") == 3


def test_retry_after_is_obeyed_and_a_long_one_ends_the_run(
    wiki: WikiServer, tmp_path: Path
) -> None:
    wiki.faults["revision"] = [Fault(429, {"Retry-After": "1"})]
    started = time.monotonic()
    assert len(fetch(wiki, tmp_path).taken) == 1
    assert time.monotonic() - started >= 1
    wiki.faults["revision"] = [Fault(429, {"Retry-After": "99999"})]
    result = fetch(wiki, tmp_path, range(2, 9), config("sources.fetch.connections=1"))
    assert result.stopped and "asks us to wait" in result.stopped
    assert not result.taken and len(result.put_off) == 1


def test_a_slow_body_is_given_up_and_tried_again(wiki: WikiServer, tmp_path: Path) -> None:
    wiki.faults["html"] = [Fault(drip=0.2)]
    result = fetch(wiki, tmp_path, settings=config("sources.fetch.body_seconds=0.5"))
    assert len(result.taken) == 1 and wiki.roles().count("html") == 2


def test_a_failure_that_lasts_puts_the_candidate_off(wiki: WikiServer, tmp_path: Path) -> None:
    wiki.faults["html"] = [Fault(500, body=b"x")] * 4
    result = fetch(wiki, tmp_path, (1, 2), config("sources.fetch.connections=1"))
    assert [f.title for f in result.put_off] == ["Siege 1"] and len(result.taken) == 1
    assert not (tmp_path / FAILED).exists()
    assert len(fetch(wiki, tmp_path, (1, 2)).taken) == 1


FINAL = {
    "404": ({"html": Fault(404, body=b"{}")}, "not found"),
    "an error inside a 200": (
        {"revision": Fault(body=as_json({"error": {"code": "badvalue", "info": "no"}}))},
        "badvalue",
    ),
    "a revision that is not there": (
        {"revision": Fault(body=as_json({"query": {"badrevids": {"1": {}}}}))},
        "does not exist",
    ),
    "no JSON": ({"revision": Fault(body=b"<html>proxy</html>")}, "JSON"),
    "a redirect off the hosts": (
        {"html": Fault(301, {"Location": "https://example.org/x"}, b"x")},
        "not on a Wikimedia host",
    ),
    "a redirect to a look-alike": (
        {"html": Fault(302, {"Location": "https://en.wikipedia.org.evil.example/x"}, b"x")},
        "not on a Wikimedia host",
    ),
    "an endless redirect": (
        {"html": [Fault(301, {"Location": "/w/rest.php/v1/revision/1/html"}, b"x")] * 9},
        "redirects more than",
    ),
    "a 304 nobody asked for": ({"html": Fault(304, body=b"")}, "status 304"),
    "legacy HTML": (
        {"html": Fault(body=b'<html><div class="mw-parser-output"></div></html>')},
        "older parser",
    ),
    "HTML of another revision": ({"html": Fault(body=material(3).answers["html"].body)}, "HTML of"),
}


@pytest.mark.parametrize(("faults", "why"), FINAL.values(), ids=FINAL.keys())
def test_what_can_never_succeed_is_written_down_and_not_asked_again(
    wiki: WikiServer, tmp_path: Path, faults: dict[str, Any], why: str
) -> None:
    for role, fault in faults.items():
        wiki.faults[role] = list(fault) if isinstance(fault, list) else [fault]
    result = fetch(wiki, tmp_path)
    assert not result.taken and why in result.refused[0].reason
    assert why in read_failures(tmp_path / FAILED)[0].reason
    assert list((tmp_path / BUNDLES).iterdir()) == []
    asked = len(wiki.seen)
    assert fetch(wiki, tmp_path).already == 1 and len(wiki.seen) == asked


def test_a_redirect_on_the_same_host_is_followed(wiki: WikiServer, tmp_path: Path) -> None:
    wiki.faults["html"] = [Fault(301, {"Location": "/w/rest.php/v1/revision/1/html"}, b"moved")]
    assert len(fetch(wiki, tmp_path).taken) == 1


def test_wikitext_whose_sha1_is_not_the_revisions_is_refused(tmp_path: Path) -> None:
    with serve([material(1, sha1="0" * 40)]) as wiki:
        assert "SHA-1" in fetch(wiki, tmp_path).refused[0].reason


def test_a_candidate_that_names_another_page_is_refused(wiki: WikiServer, tmp_path: Path) -> None:
    settings = config()
    wrong = candidate_of(wiki.by_revision[1], page_id=71)
    client = PoliteClient(settings.fetch, test_server=wiki.url)
    result = fetch_all([wrong], tmp_path, client, lambda project: wiki.url, settings)
    assert "the candidate says" in result.refused[0].reason


def test_never_more_connections_than_allowed(wiki: WikiServer, tmp_path: Path) -> None:
    for role in ("revision", "html", "talk"):
        wiki.faults[role] = [Fault(drip=0.01)] * 8
    assert len(fetch(wiki, tmp_path, range(1, 9), config("sources.fetch.connections=3")).taken) == 8
    assert 1 < wiki.most_busy <= 3
    with pytest.raises(UsageError, match="less than or equal to 3"):
        config("sources.fetch.connections=4")


def test_unchanged_pages_are_not_sent_again(wiki: WikiServer, tmp_path: Path) -> None:
    (first,) = fetch(wiki, tmp_path / "a").taken
    again = fetch(wiki, tmp_path / "b", known=Recording(tmp_path / "a"))
    (second,) = again.taken
    assert (second / "parsoid.html").read_bytes() == (first / "parsoid.html").read_bytes()
    assert all("if-none-match" in headers for _, headers in wiki.seen[3:])


def test_the_offline_twin_makes_the_same_bundle(wiki: WikiServer, tmp_path: Path) -> None:
    taken = fetch(wiki, tmp_path / "live", (1, 2, 3)).taken
    settings = config()
    wanted = [candidate_of(wiki.by_revision[n], page_id=70) for n in (1, 2, 3)]
    asked = len(wiki.seen)
    result = fetch_all(
        wanted,
        tmp_path / "twin",
        Recording(tmp_path / "live"),
        lambda project: wiki.url,
        settings,
    )
    assert len(wiki.seen) == asked
    # The same answers at the same times make the same bundles, byte for byte.
    assert sorted(path.name for path in taken) == sorted(path.name for path in result.taken)


@pytest.mark.slow
def test_a_killed_fetch_repeats_nothing_whole(tmp_path: Path) -> None:
    with serve([material(n) for n in range(1, 13)]) as wiki:
        wiki.faults["html"] = [Fault(drip=0.02)] * 12
        wanted = [candidate_of(m, page_id=70 + n) for n, m in wiki.by_revision.items()]
        for n, m in wiki.by_revision.items():
            body = json.loads(m.answers["revision"].body)
            body["query"]["pages"][0]["pageid"] = 70 + n
            html = m.answers["html"].body.replace(b'content="70"', b'content="%d"' % (70 + n))
            m.answers["revision"] = HttpAnswer("", 200, {}, as_json(body), RECEIVED_AT)
            m.answers["html"] = HttpAnswer("", 200, {}, html, RECEIVED_AT)
        candidates = tmp_path / "candidates.jsonl"
        candidates.write_text("".join(c.model_dump_json() + "\n" for c in wanted))
        out = tmp_path / "out"
        command = [
            sys.executable,
            "-m",
            "pdt",
            "source",
            "fetch",
            str(candidates),
            "--out",
            str(out),
        ]
        command += ["--test-server", wiki.url, "--resume", "--json"]
        command += [part for one in FAST for part in ("--set", one)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(list(out.glob("bundles/*/bundle.json"))) < 4:
            assert running.poll() is None
            time.sleep(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        kept = {path.parent.name for path in out.glob("bundles/*/bundle.json")}
        before = wiki.roles().count("html")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        summary = json.loads(done.stdout)
        assert summary["already_there"] == len(kept) >= 4
        assert summary["taken"] == 12 - len(kept)
        assert wiki.roles().count("html") - before == 12 - len(kept)
        assert kept <= {path.parent.name for path in out.glob("bundles/*/bundle.json")}


@pytest.mark.parametrize("contact", [None, "", "me", "pdt", "a b@c.d", "x@y", "a@b.c\r\nX: y"])
def test_without_a_contact_nobody_is_asked(contact: str | None) -> None:
    with pytest.raises(UsageError, match="who is calling"):
        user_agent(contact)
    assert "me@example.org" in user_agent("me@example.org")


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("https://en.wikipedia.org/w/api.php", True),
        ("http://en.wikipedia.org/w/api.php", False),
        ("https://wikipedia.org.example/", False),
        ("https://notwikipedia.org/", False),
        ("https://example.org/en.wikipedia.org", False),
        ("https://en.wikipedia.org@example.org/", False),
        ("file:///etc/passwd", False),
    ],
)
def test_only_wikimedia_hosts_are_asked(url: str, ours: bool) -> None:
    assert is_wikimedia(url) is ours


@pytest.mark.parametrize("server", ["http://example.org", "https://127.0.0.1", "http://10.0.0.1"])
def test_a_test_server_must_be_on_this_machine(server: str) -> None:
    with pytest.raises(UsageError, match="not on this machine"):
        base_url("en.wikipedia.org", server)


def test_retry_after_is_seconds_or_a_date() -> None:
    assert retry_after_seconds("7") == 7
    assert retry_after_seconds("Sat, 14 Nov 2020 00:00:00 GMT") == 0
    assert (retry_after_seconds("Sat, 14 Nov 2099 00:00:00 GMT") or 0) > 1e9
    assert retry_after_seconds("soon") is None


def test_candidates_are_strict(tmp_path: Path) -> None:
    good = candidate_of(material(1))
    assert isinstance(good, Candidate)
    with pytest.raises(ValueError, match="family_keys"):
        Candidate.model_validate({**good.model_dump(), "family_keys": []})
