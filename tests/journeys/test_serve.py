"""The server as its clients meet it: the official SDK, plain requests, and people who go away."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.errors import CRASHED, UsageError
from pdt.generation.events import Done
from pdt.generation.replay import differences, replay
from pdt.generation.settings import GenerationSettings
from pdt.generation.trace import load_trace
from pdt.generation.writer import Writer
from pdt.serve import sse
from pdt.serve.engine import Engine
from pdt.serve.limits import Limits
from pdt.serve.writing import Status
from pdt.web.keys import Keys
from tests.support.commands import run_here
from tests.support.generations import BLOCK
from tests.support.servers import (
    MESSAGES,
    REQUEST,
    SOURCE,
    lines_of,
    served,
    tiny_writer,
    wait_until,
)
from tests.support.web_server import Site

PATH = "/v1/pdt/generations"
KEYS = ["the-first-of-two-keys", "the-second-of-two-keys"]


@pytest.fixture(scope="module")
def writer() -> Writer:
    return tiny_writer()


@pytest.fixture(scope="module")
def site(writer: Writer) -> Iterator[tuple[Site, Engine]]:
    with served(writer) as running:
        yield running


@pytest.fixture(scope="module")
def client(site: tuple[Site, Engine]) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{site[0].url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def expected(writer: Writer) -> Done:
    """What the library writes alone."""
    return writer.generate(SOURCE, REQUEST, GenerationSettings(max_tokens=40))


def test_the_sdks_chat_reads_the_document_whole_and_streamed(
    client: openai.OpenAI, expected: Done
) -> None:
    asked: Any = {"model": "tiny", "messages": MESSAGES, "max_tokens": 40}
    whole = client.chat.completions.create(**asked)
    text = expected.documents[0].text
    assert whole.choices[0].message.content == text
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert whole.usage.completion_tokens == expected.ledger.tokens
    pieces = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(p.choices[0].delta.content or "" for p in pieces) == text
    assert [p.choices[0].finish_reason for p in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1].choices[0].finish_reason == "length"
    assert all(p.usage is None for p in pieces)
    with_usage = list(
        client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    )
    assert with_usage[-1].choices == []
    assert with_usage[-1].usage == whole.usage


def test_one_choice_a_lane_only_when_it_is_asked_for(client: openai.OpenAI, expected: Done) -> None:
    asked: Any = {"model": "tiny", "messages": MESSAGES, "max_tokens": 40}
    sections = [section.text.strip() for section in expected.documents[0].sections]
    apart = client.chat.completions.create(**asked, extra_body={"lanes": "choices"})
    assert [choice.message.content for choice in apart.choices] == sections
    said = ["", "", ""]
    for piece in client.chat.completions.create(
        **asked, stream=True, extra_body={"lanes": "choices"}
    ):
        for choice in piece.choices:
            said[choice.index] += choice.delta.content or ""
    assert said == sections


def test_completions_take_the_last_paragraph_as_the_request(
    client: openai.OpenAI, expected: Done
) -> None:
    asked: Any = {"model": "tiny", "prompt": f"{SOURCE}\n\n{REQUEST}", "max_tokens": 40}
    assert client.completions.create(**asked).choices[0].text == expected.documents[0].text
    pieces = client.completions.create(**asked, stream=True)
    assert "".join(p.choices[0].text for p in pieces) == expected.documents[0].text


def test_responses_carry_lanes_by_output_index_and_the_sdk_joins_them_in_order(
    client: openai.OpenAI, expected: Done
) -> None:
    asked: Any = {
        "model": "tiny", "instructions": SOURCE, "input": REQUEST, "max_output_tokens": 40,
    }  # fmt: skip
    text = expected.documents[0].text
    whole = client.responses.create(**asked)
    assert whole.output_text == text
    assert whole.status == "incomplete"
    assert [item.type for item in whole.output] == ["message"] * 3
    kinds, by_index, last = [], dict[int, str](), None
    for event in client.responses.create(**asked, stream=True):
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            by_index[event.output_index] = by_index.get(event.output_index, "") + event.delta
            if len(by_index) == 3 and last is None:
                last = dict(by_index)
        elif event.type == "response.incomplete":
            assert event.response.output_text == text
    assert "".join(by_index[rank] for rank in range(3)) == text
    assert last is not None and all(last[k] != by_index[k] for k in range(3)), "not interleaved"
    assert {"response.pdt.plan", "response.pdt.barrier", "response.created"} <= set(kinds)


def test_the_sdks_stream_helper_reads_every_event_and_knows_no_incomplete_end(
    client: openai.OpenAI, expected: Done
) -> None:
    """Its `get_final_response` wants `response.completed` of any server; a cut answer has none."""
    asked: Any = {"model": "tiny", "instructions": SOURCE, "input": REQUEST}
    with client.responses.stream(**asked, max_output_tokens=40) as stream:
        *_, last = stream
        assert last.type == "response.incomplete"
        assert last.response.output_text == expected.documents[0].text
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            stream.get_final_response()


def test_settings_are_honoured_or_refused_by_name(client: openai.OpenAI, writer: Writer) -> None:
    asked: Any = {"model": "tiny", "messages": MESSAGES, "max_tokens": 24}
    sampled = GenerationSettings(max_tokens=24, temperature=0.8, top_p=0.9, seed=5)
    said = client.chat.completions.create(**asked, temperature=0.8, top_p=0.9, seed=5)
    alone = writer.generate(SOURCE, REQUEST, sampled).documents[0].text
    assert said.choices[0].message.content == alone
    word = alone.split()[4]
    stopped = client.chat.completions.create(
        **asked, temperature=0.8, top_p=0.9, seed=5, stop=[word]
    )
    assert word not in (stopped.choices[0].message.content or "").split("\n\n")[0]
    refused: dict[str, Any] = {
        "logprobs": True, "n": 2, "presence_penalty": 0.5, "logit_bias": {"5": 1},
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }  # fmt: skip
    for name, value in refused.items():
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**asked, **{name: value})
        assert caught.value.param == name
    ignored = client.chat.completions.create(**asked, user="someone", extra_body={"unheard_of": 1})
    assert ignored.choices[0].message.content


def test_responses_honour_seed_and_stop_and_know_one_name_for_the_number_of_tokens(
    client: openai.OpenAI, writer: Writer
) -> None:
    asked: Any = {
        "model": "tiny", "instructions": SOURCE, "input": REQUEST, "max_output_tokens": 24,
        "temperature": 0.8,
    }  # fmt: skip
    settings = GenerationSettings(max_tokens=24, temperature=0.8, seed=5)
    alone = writer.generate(SOURCE, REQUEST, settings).documents[0].text
    assert client.responses.create(**asked, extra_body={"seed": 5}).output_text == alone
    word = alone.split()[4]
    cut = client.responses.create(**asked, extra_body={"seed": 5, "stop": word}).output_text
    assert word not in cut and alone.startswith(cut.split("\n\n")[0])
    for extra in ({"max_tokens": 24}, {"logprobs": True}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(**asked, extra_body=extra)
        assert caught.value.param in extra


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 100_000}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "wizard", "content": "Hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
    ],
)
def test_bad_input_is_400_and_names_the_field(
    client: openai.OpenAI, change: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**({"model": "tiny", "messages": MESSAGES} | change))
    assert caught.value.param == param


def test_an_unknown_model_is_404_and_the_known_one_is_listed(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-9", messages=MESSAGES)
    assert caught.value.code == "model_not_found"
    (model,) = client.models.list()
    assert model.id == "tiny"
    assert client.models.retrieve("tiny").id == "tiny"


def test_what_is_too_long_or_holds_control_tokens_is_refused_with_the_field_to_change(
    client: openai.OpenAI,
) -> None:
    for source, request, param, says in (
        ("word " * 3000, REQUEST, "source", "reads 128 tokens"),
        ("word " * 500, REQUEST, "source", "the model reads 128"),
        (SOURCE, REQUEST, "max_tokens", r"Here a lane can write \d+"),
        (SOURCE, "Write <end> of it.", None, "control token"),
    ):
        tokens = 1000 if param == "max_tokens" else 20
        with pytest.raises(openai.BadRequestError, match=says) as caught:
            client.responses.create(
                model="tiny", instructions=source, input=request, max_output_tokens=tokens
            )
        assert caught.value.param == param


def test_a_plain_chat_client_puts_source_and_request_into_one_message(
    client: openai.OpenAI, expected: Done
) -> None:
    message: Any = {"role": "user", "content": f"{SOURCE}\n\n{REQUEST}"}
    said = client.chat.completions.create(model="tiny", messages=[message], max_tokens=40)
    assert said.choices[0].message.content == expected.documents[0].text


@pytest.mark.paper("§3.6")
def test_many_at_once_each_read_what_they_would_read_alone(
    site: tuple[Site, Engine], writer: Writer
) -> None:
    """Other seeds, lengths and edits, through HTTP, all at the same time."""
    asked = [
        {
            "source": SOURCE,
            "request": REQUEST,
            "settings": {"max_tokens": 8 + 5 * i, "temperature": 0.7 * (i % 2), "seed": i},
            "interventions": ["swap-plans:0,2"] if i % 3 == 0 else [],
            "stream": True,
        }
        for i in range(7)
    ]
    said: dict[int, list[dict[str, Any]]] = {}

    def read(i: int) -> None:
        said[i] = list(lines_of(site[0], "POST", PATH, asked[i]))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    from pdt.generation.interventions import parse_intervention

    for i, body in enumerate(asked):
        alone = writer.generate(
            SOURCE,
            REQUEST,
            GenerationSettings.model_validate(body["settings"]),
            interventions=[parse_intervention(text) for text in body["interventions"]],  # type: ignore[attr-defined]
        )
        (done,) = [event for event in said[i] if event["sse"] == "done"]
        sections = done["documents"][0]["sections"]
        assert [tuple(s["tokens"]) for s in sections] == [
            s.tokens for s in alone.documents[0].sections
        ]


def test_a_run_is_paused_edited_resumed_branched_exported_and_replayed(
    site: tuple[Site, Engine], writer: Writer, tmp_path: Any
) -> None:
    here = site[0]
    body = {"source": SOURCE, "request": REQUEST, "settings": {"max_tokens": 30}, "pause": True}
    created = here.ask("POST", PATH, body)
    assert created.status == 201
    path = f"{PATH}/{created.json['id']}"

    def until(status: str) -> list[dict[str, Any]]:
        said = []
        for event in lines_of(here, "GET", f"{path}/events"):
            said.append(event)
            if event.get("status") == status:
                return said
        raise AssertionError(f"it never was {status}")

    paused = until("paused")
    assert [e["sse"] for e in paused].count("barrier") == 1
    assert [e["n"] for e in paused] == list(range(len(paused)))
    assert (
        here.ask("POST", f"{path}/interventions", {"interventions": ["swap-plans:0,9"]}).status
        == 400
    )
    edited = here.ask("POST", f"{path}/interventions", {"interventions": ["swap-plans:0,1"]})
    assert edited.status == 200
    assert here.ask("POST", f"{path}/resume").status == 200
    until("done")
    again = list(lines_of(here, "GET", f"{path}/events?after={len(paused)}"))
    assert again[0]["n"] == len(paused)
    assert "intervened" in [e["sse"] for e in again]
    assert again[-1]["sse"] == "end"
    shown = here.ask("GET", path).json
    assert shown["interventions"] == ["swap-plans:0,1"]
    assert shown["source"] == SOURCE

    file = tmp_path / "trace.json"
    file.write_text(here.ask("GET", f"{path}/trace").text)
    trace = load_trace(file)
    repeated = replay(writer.model, trace, writer.tokenizer)
    list(repeated.events())
    assert differences(trace, repeated) == []

    branched = here.ask("POST", f"{path}/branch", {"block": 1, "interventions": ["remove-notes"]})
    assert branched.status == 201
    child = f"{PATH}/{branched.json['id']}"
    (done,) = [e for e in lines_of(here, "GET", f"{child}/events") if e["sse"] == "done"]
    ours = {s["lane"]: s["tokens"] for s in done["documents"][0]["sections"]}
    theirs = {s["lane"]: s["tokens"] for s in shown["documents"][0]["sections"]}
    assert all(ours[lane][:BLOCK] == theirs[lane][:BLOCK] for lane in range(3))
    assert ours != theirs
    assert here.ask("POST", f"{path}/branch", {"block": 99}).status == 400

    for of in (path, child):
        again = here.ask("POST", f"{of}/replay").json
        assert again["replay_of"] == {"id": of.rpartition("/")[2], "differences": None}
        list(lines_of(here, "GET", f"{PATH}/{again['id']}/events"))
        shown_again = here.ask("GET", f"{PATH}/{again['id']}").json
        assert shown_again["replay_of"]["differences"] == []
        assert shown_again["status"] == "done"

    text = shown["documents"][0]["text"]
    assert text in here.ask("GET", f"{path}/markdown").text
    page = here.ask("GET", f"{path}/html").text
    assert "default-src 'none'" in page and "<script" not in page
    assert "under swap-plans:0,1" in page
    listed = [one["id"] for one in here.ask("GET", PATH).json["data"]]
    assert branched.json["id"] in listed[:3]
    assert here.ask("DELETE", path).json["deleted"]
    assert here.ask("GET", path).status == 404


def test_who_goes_away_frees_the_rows_and_changes_nobodys_text(
    site: tuple[Site, Engine], expected: Done
) -> None:
    here, engine = site
    wait_until(engine, 0)
    for path, body in (
        (PATH, {"source": SOURCE, "request": REQUEST, "stream": True}),
        ("/v1/chat/completions", {"model": "tiny", "messages": MESSAGES, "stream": True}),
    ):
        streams = [lines_of(here, "POST", path, body) for _ in range(4)]
        for stream in streams:
            next(stream), next(stream)
        kept = lines_of(
            here, "POST", PATH,
            {"source": SOURCE, "request": REQUEST, "settings": {"max_tokens": 40}, "stream": True},
        )  # fmt: skip
        next(kept)
        for stream in streams:
            stream.close()  # type: ignore[attr-defined]
        (done,) = [event for event in kept if event["sse"] == "done"]
        assert done["documents"][0]["text"] == expected.documents[0].text
        wait_until(engine, 0)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_before_a_byte_came_ends_its_document(
    writer: Writer, stream: bool, waits: bool
) -> None:
    """Also one that waits for the whole answer, and one whose document waits for its turn."""
    with served(writer, limits=Limits(documents=1), grace=0) as (here, engine):
        if waits:
            body = {"source": SOURCE, "request": REQUEST, "pause": True}
            assert here.ask("POST", PATH, body).status == 201
        for path, fields in (
            ("/v1/chat/completions", {"messages": MESSAGES}),
            ("/v1/completions", {"prompt": f"{SOURCE}\n\n{REQUEST}"}),
            ("/v1/responses", {"instructions": SOURCE, "input": REQUEST}),
        ):
            for _ in range(9):  # a short document may come to its end before its client is gone
                sent = json.dumps({"model": "tiny", "stream": stream, **fields}).encode()
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n"
                before = len(engine.kept.of(""))
                with socket.create_connection(("127.0.0.1", here.port)) as gone:
                    gone.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + sent)
                    while len(engine.kept.of("")) == before:
                        time.sleep(0.005)
                wait_until(engine, int(waits))
                if engine.kept.of("")[0].status is Status.CANCELLED:
                    break
            else:
                raise AssertionError(f"every document of {path} was written for nobody")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES}),
        ("/v1/completions", {"prompt": f"{SOURCE}\n\n{REQUEST}"}),
        ("/v1/responses", {"instructions": SOURCE, "input": REQUEST}),
    ],
)
def test_a_stream_that_is_cut_off_says_so_in_an_error_and_is_never_silent(
    writer: Writer, path: str, fields: dict[str, Any]
) -> None:
    """Somebody cancels the document while it waits for its turn."""
    with served(writer, limits=Limits(documents=1), grace=0) as (here, engine):
        assert here.ask("POST", PATH, {"source": SOURCE, "request": REQUEST, "pause": True})
        stream = lines_of(here, "POST", path, {"model": "tiny", "stream": True, **fields})
        first = next(stream)
        engine.cancel(engine.kept.of("")[0])
        *_, last = [first, *stream]
        assert last["error"]["code"] == "interrupted"
        assert "finish_reason" not in last and last.get("type", "error") == "error"


def test_a_stream_in_which_nothing_happens_is_kept_alive_by_comments(
    site: tuple[Site, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PULSE", 0.05)
    here = site[0]
    made = here.ask("POST", PATH, {"source": SOURCE, "request": REQUEST, "pause": True}).json
    connection = HTTPConnection("127.0.0.1", here.port, timeout=60)
    connection.request("GET", f"{PATH}/{made['id']}/events")
    answer = connection.getresponse()
    while not answer.readline().startswith(b": "):
        pass
    connection.close()
    assert here.ask("POST", f"{PATH}/{made['id']}/cancel", {}).status == 200


def test_a_full_queue_says_when_to_come_again_and_a_key_has_its_share(writer: Writer) -> None:
    limits = Limits(documents=1, waiting=2, share=2)
    body = {"source": SOURCE, "request": REQUEST, "pause": True}
    with served(writer, limits=limits, keys=Keys(KEYS), grace=0) as (site, engine):

        def ask(key: int, path: str = PATH, sent: object = body) -> Any:
            return site.ask("POST", path, sent, {"authorization": f"Bearer {KEYS[key]}"})

        first = [ask(0), ask(0)]
        assert [answer.status for answer in first] == [201, 201]
        own = ask(0)
        assert (own.status, own.headers["retry-after"]) == (429, "5")
        third = ask(1)
        assert third.status == 201
        full = ask(1)
        assert (full.status, full.json["error"]["code"]) == (503, "queue_full")
        assert full.headers["retry-after"] == "5"
        # The second key's one document comes before the first key's second... or after it, but
        # neither key sees or stops what is the other's.
        assert ask(1, f"{PATH}/{first[1].json['id']}/cancel", {}).status == 404
        assert ask(0, f"{PATH}/{first[1].json['id']}/cancel", {}).json["status"] == "cancelled"
        assert ask(0).status == 201
        engine.drain()
        assert ask(1).status == 503
        ready = site.ask("GET", "/ready", headers={"authorization": f"Bearer {KEYS[0]}"})
        assert (ready.status, ready.json["status"]) == (503, "draining")


def test_keys_take_turns_however_many_one_of_them_asks_for(writer: Writer) -> None:
    from pdt.serve.places import Places
    from pdt.serve.writing import Asked, Writing

    places = Places(Limits())
    asked = Asked(SOURCE, REQUEST, GenerationSettings())
    for holder in ("a", "a", "a", "a", "b", "c", "b"):
        places.wait(Writing(asked, holder))
    turns = [found.holder for found in iter(places.next, None)]
    assert turns == ["a", "b", "c", "a", "b", "a", "a"]


def test_a_document_over_its_time_ends_with_what_was_written(writer: Writer) -> None:
    with served(writer, limits=Limits(seconds=0.05)) as (site, _):
        client = openai.OpenAI(base_url=f"{site.url}/v1", api_key="none", max_retries=0)
        said = client.chat.completions.create(model="tiny", messages=MESSAGES)
        assert said.choices[0].finish_reason == "length"
        assert (said.model_extra or {})["pdt"]["late"]


def test_the_server_counts_and_says_whether_it_is_ready(site: tuple[Site, Engine]) -> None:
    here = site[0]
    assert here.ask("GET", "/health").json == {"status": "alive"}
    assert here.ask("GET", "/ready").json == {"status": "ready"}
    asked = {"source": SOURCE, "request": REQUEST, "settings": {"max_tokens": 2}, "stream": True}
    assert list(lines_of(here, "POST", PATH, asked))
    assert here.ask("POST", PATH, {}).status == 400
    text = here.ask("GET", "/metrics").text
    assert 'pdt_documents_total{status="done"}' in text
    assert 'pdt_refused_total{status="400"}' in text
    assert "pdt_first_token_seconds_bucket" in text


def test_the_command_refuses_before_it_loads_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PDT_API_KEY", raising=False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        for arguments, says in (
            (["--host", "0.0.0.0"], "no API key is set"),
            (["--port", port], "cannot be listened on"),
            (["--set", "documents=0"], "documents cannot be"),
            (["--key-file", "/nowhere"], "is not a file"),
        ):
            result = CliRunner().invoke(app, ["serve", *arguments])
            assert isinstance(result.exception, UsageError), result.output
            assert says in str(result.exception)


def test_a_model_that_cannot_be_loaded_is_one_message_and_a_crash_has_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PDT_API_KEY", raising=False)
    serve = ("serve", "--model", "./nano", "--port", 0)
    refused = run_here(*serve, cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.count("nano is not a pdt model") == 1
    assert not [record for record in caplog.records if record.exc_info]
    monkeypatch.setattr(Writer, "load", lambda *_, **__: 1 // 0)
    assert run_here(*serve, cwd=tmp_path).returncode == CRASHED
    assert [record for record in caplog.records if record.exc_info]
