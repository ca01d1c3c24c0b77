"""A teacher behind a server that misbehaves: repairs, retries, keys, kept answers, secrets."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.chronicle.teacher import ChronicleTeacher
from pdt.errors import ConfigError, PdtError, UsageError
from pdt.teacher import prompts
from pdt.teacher.budget import worst_cost
from pdt.teacher.call import Call, NotAnswered
from pdt.teacher.drafts import FactsDraft, reply_schema
from pdt.teacher.interface import Taught, Teacher, TeachingSource, Untaught, teach
from pdt.teacher.journal import Journal, Replay
from pdt.teacher.prompted import PromptedTeacher
from pdt.teacher.trouble import TeacherFailed
from tests.support.teacher_server import TeacherServer
from tests.support.teaching import (
    KEY,
    check_with,
    documents,
    in_order,
    one_call,
    open_teacher,
    settings,
    source_of,
    spent,
)


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("stream", [True, False])
def test_a_server_teaches_a_document_that_keeps_every_rule(
    server: TeacherServer, tmp_path: Path, stream: bool
) -> None:
    config = settings(server, f"teacher.endpoint.stream={stream}")
    document = documents()[0]
    taught = teach(open_teacher(config, tmp_path), source_of(document))
    assert isinstance(taught, Taught)
    assert in_order(taught.value.answer) == in_order(document.answer)
    assert taught.value.inventory == document.inventory
    assert check_with(config)(taught.value) == []
    assert [attempt.broken for attempt in taught.attempts] == [(), ()]
    assert spent(tmp_path) == pytest.approx(sum(attempt.cost for attempt in taught.attempts))
    sent = server.asked[0]
    assert sent["response_format"]["json_schema"]["schema"] == reply_schema(FactsDraft)
    assert sent["max_completion_tokens"] == 4096


def test_three_teachers_are_one_interface(server: TeacherServer, tmp_path: Path) -> None:
    config, document = settings(server), documents()[1]
    asked: Teacher = open_teacher(config, tmp_path)
    first = teach(asked, source_of(document))
    replayed: Teacher = PromptedTeacher(Replay(Journal(tmp_path)), config, check_with(config))
    chronicle: Teacher = ChronicleTeacher(turn_dials("nano", ["coined_share=0"]), nano_meter())
    count = len(server.asked)
    again, known = teach(replayed, source_of(document)), teach(chronicle, source_of(document))
    assert isinstance(first, Taught) and isinstance(again, Taught) and isinstance(known, Taught)
    assert again == first and known.value == document
    assert in_order(known.value.answer) == in_order(first.value.answer)
    assert len(server.asked) == count, "a replay sends nothing"
    with pytest.raises(NotAnswered, match="No recorded reply for extract_facts"):
        teach(replayed, source_of(documents()[2]))


@pytest.mark.parametrize("fault", ["invalid_json", "breaks_rule", "length", "refusal"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_bad_reply_is_sent_back_with_its_broken_rules_and_every_attempt_is_kept(
    server: TeacherServer, tmp_path: Path, fault: str, first: int
) -> None:
    server.faults = [""] * first + [fault]
    taught = teach(open_teacher(settings(server), tmp_path), source_of(documents()[0]))
    assert isinstance(taught, Taught)
    broken = [bool(attempt.broken) for attempt in taught.attempts]
    assert broken == [True, False, False] if first == 0 else [False, True, False]
    repair = server.asked[first + 1]["messages"]
    assert [message["role"] for message in repair] == ["system", "user", "assistant", "user"]
    rule = {"invalid_json": "reply_schema", "length": "reply_whole", "refusal": "reply_given"}
    expected = rule.get(fault, ("fact_quote", "role_quote")[first])
    assert f"- {expected}" in repair[-1]["content"]
    assert len(list(Journal(tmp_path).transcripts())) == 3
    assert spent(tmp_path) == pytest.approx(sum(attempt.cost for attempt in taught.attempts))


def test_a_teacher_that_never_gets_it_right_is_asked_a_bounded_number_of_times(
    server: TeacherServer, tmp_path: Path
) -> None:
    server.faults = ["breaks_rule"] * 10
    config = settings(server, "teacher.attempts=3")
    taught = teach(open_teacher(config, tmp_path), source_of(documents()[0]))
    assert isinstance(taught, Untaught) and len(taught.attempts) == len(server.asked) == 3
    assert [failure.rule for failure in taught.failures] == ["fact_quote"]


@pytest.mark.parametrize(
    ("fault", "stream", "lost"),
    [
        ("429", True, False),
        ("500", True, False),
        ("slow", True, True),
        ("slow", False, True),
        ("no_json", False, True),
        ("cut", True, True),
        ("cut", False, True),
    ],
)
def test_a_failing_server_is_asked_again_and_what_it_may_have_billed_stays_in_the_books(
    server: TeacherServer, tmp_path: Path, fault: str, stream: bool, lost: bool
) -> None:
    server.faults = [fault]
    config = settings(server, f"teacher.endpoint.stream={stream}")
    taught = teach(open_teacher(config, tmp_path), source_of(documents()[0]))
    assert isinstance(taught, Taught) and len(taught.attempts) == 2
    assert len(server.asked) == 3
    known = sum(attempt.cost for attempt in taught.attempts)
    if lost:
        first = next(t for t in Journal(tmp_path).transcripts() if t.key == taught.attempts[0].call)
        known += worst_cost(first.call, config.teacher.endpoint)
    assert spent(tmp_path) == pytest.approx(known)


def test_retry_after_is_honoured(server: TeacherServer, tmp_path: Path) -> None:
    server.faults = ["429:1"]
    teach(open_teacher(settings(server), tmp_path), source_of(documents()[0]))
    assert server.at[1] - server.at[0] >= 1.0


def test_a_server_that_stays_down_ends_the_run_with_everything_kept(
    server: TeacherServer, tmp_path: Path
) -> None:
    server.faults = ["", *["503"] * 20]
    config = settings(server, "teacher.endpoint.tries=3")
    with pytest.raises(TeacherFailed, match="failed 3 times in a row; the last: the server failed"):
        teach(open_teacher(config, tmp_path), source_of(documents()[0]))
    server.faults = []
    count = len(server.asked)
    assert isinstance(teach(open_teacher(config, tmp_path), source_of(documents()[0])), Taught)
    assert len(server.asked) == count + 1, "the first pass was answered before and is not asked"


def test_a_changed_prompt_model_parameter_schema_or_input_never_takes_an_old_answer(
    server: TeacherServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(documents()[0])

    def asks(*more: str, what: TeachingSource = source) -> int:
        before = len(server.asked)
        open_teacher(settings(server, *more), tmp_path).extract_facts(what)
        return len(server.asked) - before

    assert asks() == 1
    assert asks() == 0
    assert asks("teacher.endpoint.timeout=2", "teacher.endpoint.tries=2") == 0
    assert asks("teacher.endpoint.model=other") == 1
    assert asks("teacher.endpoint.parameters={temperature: 0.5}") == 1
    assert asks(what=source_of(documents()[1])) == 1
    old = prompts.teacher_prompt
    with monkeypatch.context() as patch:
        patch.setattr("pdt.teacher.prompted.teacher_prompt", lambda name: old(name) + "!")
        assert asks() == 1
    with monkeypatch.context() as patch:
        changed = {**reply_schema(FactsDraft), "title": "Other"}
        patch.setattr("pdt.teacher.prompted.reply_schema", lambda draft: changed)
        assert asks() == 1
    assert asks() == 0
    call = one_call(settings(server))
    assert Call(**{**call.model_dump(), "code": "pdt.teacher/0"}).key != call.key


def test_the_key_reaches_the_server_and_no_file_log_or_message(
    server: TeacherServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = settings(server, "teacher.attempts=2")
    server.faults = ["500", "echo", "429", "cut", "echo", "echo"]
    teacher = open_teacher(config, tmp_path)
    first = teach(teacher, source_of(documents()[0]))
    server.faults = ["401"]
    with pytest.raises(TeacherFailed, match=r"refused the call \(401\).*\[key\]") as refused:
        teach(teacher, source_of(documents()[1]))
    texts = [str(first), str(refused.value), repr(refused.value.__context__), caplog.text]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    texts += [config.model_dump_json(), repr(vars(teacher.client))]
    assert [text for text in texts if KEY in text] == []
    assert any("[key]" in text for text in texts), "the server did send it back"
    with pytest.raises(ConfigError, match="base_url holds a user, password or query") as wrong:
        settings(server, f"teacher.endpoint.base_url=https://me:{KEY}@host/v1")
    assert KEY not in str(wrong.value)
    with pytest.raises(ConfigError, match="no http or https address"):
        settings(server, "teacher.endpoint.base_url=localhost:8000/v1")


def test_a_missing_key_price_model_or_budget_is_refused_before_anything_is_sent(
    server: TeacherServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(server, "teacher.budget=null", "teacher.endpoint.price_in=null")
    with pytest.raises(ConfigError, match=r"endpoint\.price_in: money.*\n.*budget: the most"):
        open_teacher(config, tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        open_teacher(settings(server), tmp_path)
    assert server.asked == []


def test_a_changed_transcript_is_refused(server: TeacherServer, tmp_path: Path) -> None:
    config = settings(server)
    open_teacher(config, tmp_path).extract_facts(source_of(documents()[0]))
    path = next(tmp_path.glob("??/*.json"))
    path.write_text(path.read_text().replace('"attempt": 0', '"attempt": 1'))
    with pytest.raises(PdtError, match="holds another call than its name says"):
        open_teacher(config, tmp_path).extract_facts(source_of(documents()[0]))


def test_calls_at_a_time_are_as_many_as_threads_ask(server: TeacherServer, tmp_path: Path) -> None:
    server.delay = 0.1
    teacher = open_teacher(settings(server), tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda d: teach(teacher, source_of(d)), documents()))
    assert all(isinstance(result, Taught) for result in results)
    assert server.most_active == 4
    assert threading.active_count() < 40
