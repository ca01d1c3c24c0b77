"""The guards, headers and pages that every server of pdt stands behind."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from pydantic import BaseModel

from pdt.errors import UsageError
from pdt.web.app import guarded, new_app
from pdt.web.connections import Connection
from pdt.web.keys import Keys, read_keys, require_key_for
from pdt.web.pages import Pages
from tests.support.web_server import Site, serving

KEY = "a-key-of-some-length"
OTHER = "another-key-of-some-length"


class Asked(BaseModel):
    words: int


def small_app(**options: Any) -> Any:
    app = new_app("test", package="pdt.web")

    @app.post("/v1/echo")
    def echo(asked: Asked, request: Request) -> dict[str, object]:
        return {"words": asked.words, "holder": request.state.holder}

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError("a secret of the inside")

    @app.get("/v1/refused")
    def refused() -> None:
        raise UsageError("The source is empty. Give some text.")

    return guarded(app, **{"host": "127.0.0.1", "keys": Keys([]), **options})


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(small_app(body_bytes=1000)) as running:
        yield running


@pytest.fixture(scope="module")
def locked() -> Iterator[Site]:
    with serving(small_app(keys=Keys([KEY, OTHER]))) as running:
        yield running


def test_every_answer_has_the_security_headers_and_errors_have_one_shape(site: Site) -> None:
    for path, status in (("/health", 200), ("/v1/nothing", 404), ("/v1/broken", 500)):
        answer = site.ask("GET", path)
        assert answer.status == status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        if status >= 400:
            assert set(answer.json["error"]) == {"message", "type", "param", "code"}
            assert "secret" not in answer.text


def test_bad_input_is_400_with_the_field_named(site: Site) -> None:
    answer = site.ask("POST", "/v1/echo", {"words": "many"})
    assert (answer.status, answer.json["error"]["param"]) == (400, "words")
    assert site.ask("POST", "/v1/echo", {"words": 3}).json == {"words": 3, "holder": ""}
    broken = site.ask("POST", "/v1/echo", "{", {"content-type": "application/json"})
    assert (broken.status, broken.json["error"]["code"]) == (400, "invalid_json")
    refused = site.ask("GET", "/v1/refused")
    assert refused.status == 400 and "Give some text" in refused.json["error"]["message"]


def test_a_body_over_the_limit_is_cut_off_whatever_length_it_names(site: Site) -> None:
    assert site.ask("POST", "/v1/echo", {"words": "x" * 2000}).status == 413
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as raw:
        raw.sendall(
            b"POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n" + b" " * 1000 + b"\r\n" * 1
        )
        raw.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n")
        assert raw.recv(200).startswith(b"HTTP/1.1 413")


def test_a_page_elsewhere_cannot_make_a_browser_ask_here(site: Site) -> None:
    assert (
        site.ask("POST", "/v1/echo", '{"words": 1}', {"content-type": "text/plain"}).status == 415
    )
    elsewhere = {"origin": "https://elsewhere.example"}
    assert site.ask("POST", "/v1/echo", {"words": 1}, elsewhere).status == 403
    assert site.ask("POST", "/v1/echo", {"words": 1}, {"origin": site.url}).status == 200
    assert site.ask("GET", "/health", headers={"host": "rebound.example"}).status == 421
    assert site.ask("GET", "/health", headers={"host": f"localhost:{site.port}"}).status == 200


def test_another_origin_is_served_only_when_it_was_named() -> None:
    named = "https://studio.example"
    with serving(small_app(origins=[named])) as site:
        answer = site.ask("POST", "/v1/echo", {"words": 1}, {"origin": named})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == named


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", KEY, "Basic !!!",
     "Basic Og==", "Bearer " + "k" * 900, "Bearer " + "k" * 15_000, "Bearer \xff\xfe"],
)  # fmt: skip
def test_a_key_that_is_missing_wrong_or_oversized_is_401(
    locked: Site, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    answer = locked.ask("POST", "/v1/echo", {"words": 1}, headers)
    assert answer.status == 401
    assert answer.json["error"]["code"] == "invalid_api_key"
    assert locked.ask("GET", "/static/shared/base.css", headers=headers).status == 401
    assert locked.ask("GET", "/health", headers=headers).status == 200


def test_each_key_has_a_holder_and_a_browsers_password_is_a_key(locked: Site) -> None:
    def holder(authorization: str) -> str:
        answer = locked.ask("POST", "/v1/echo", {"words": 1}, {"authorization": authorization})
        return answer.json["holder"]

    assert holder(f"Bearer {KEY}") == "key-0"
    assert holder(f"bearer {OTHER}") == "key-1"
    assert holder("Basic YW5uYTphLWtleS1vZi1zb21lLWxlbmd0aA==") == "key-0"


def test_another_host_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PDT_API_KEY", raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.1", "pdt.example"):
        with pytest.raises(UsageError, match="PDT_API_KEY"):
            require_key_for(host, read_keys(None))
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        require_key_for(host, read_keys(None))
    monkeypatch.setenv("PDT_API_KEY", KEY)
    require_key_for("0.0.0.0", read_keys(None))
    file = tmp_path / "keys"
    file.write_text(f"# one a line\n{KEY}\n\n{OTHER}\n")
    assert read_keys(file).holder(f"Bearer {OTHER}") == "key-1"
    file.write_text("short\n")
    with pytest.raises(UsageError, match="openssl rand"):
        read_keys(file)


def test_text_in_a_page_is_escaped_and_a_missing_value_is_an_error(site: Site) -> None:
    pages = Pages("pdt.web")
    text = pages.text("refused.html", title="<b>", message='<script>"')
    assert "<script>&" not in text and "&lt;script&gt;" in text
    with pytest.raises(Exception, match="title"):
        pages.text("refused.html", message="x")
    answer = site.ask("GET", "/nowhere", headers={"accept": "text/html"})
    assert answer.status == 404 and "<h1>Nothing is here</h1>" in answer.text
    assert site.ask("GET", "/static/shared/tokens.css").status == 200
    assert site.ask("GET", "/static/shared/..%2f..%2fkeys.py").status == 404


def half_open(site: Site, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", site.port), timeout=30)
    connection.sendall(sent)
    return connection


def test_too_many_connections_are_told_when_to_come_again_and_health_still_answers() -> None:
    with serving(small_app(), connections=3) as site:
        held = [half_open(site, b"GET /v1/bro") for _ in range(3)]
        refused = site.ask("GET", "/v1/refused")
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert refused.json["error"]["code"] == "too_many_connections"
        assert site.ask("GET", "/health").status == 200
        for one in held:
            one.close()
        while (again := site.ask("GET", "/v1/refused")).status == 503:
            pass
        assert again.status == 400


def test_a_request_that_does_not_come_whole_is_cut_off_and_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "patience", 0.2)
    head = b"POST /v1/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = head + b"Content-Length: 11\r\n\r\n" + b'{"words":1}'
    with serving(small_app(), connections=5) as site:
        idle = half_open(site, b"")
        in_head = half_open(site, head[:-9])
        in_body = half_open(site, whole[:-3])
        second = half_open(site, whole)
        answer = b""
        while not answer.endswith(b"}"):  # head and body may come one after the other
            answer += second.recv(4096)
        assert b" 200 OK" in answer
        second.sendall(whole[:60])  # kept alive, and half a request again
        for one in (idle, in_head, in_body, second):
            rest = one.recv(4096)
            assert not rest, rest  # closed, and nothing said
        slow = half_open(site, whole)
        time.sleep(0.5)
        slow.sendall(whole)  # what came whole is not cut off, however long ago
        assert slow.recv(4096).count(b" 200 OK") >= 1
        assert site.ask("GET", "/health").status == 200
