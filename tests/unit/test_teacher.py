"""A teacher that is asked: placement, repair, keys, and what a real server can do wrong."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pdt.config import PdtConfig, load_config
from pdt.errors import ConfigError, PdtError, UsageError
from pdt.records.checks import check_document
from pdt.records.curated import curated_names, read_curated
from pdt.sources.chronicle.dials import turn_dials
from pdt.sources.chronicle.meter import nano_meter
from pdt.teacher import prompts
from pdt.teacher.answer import Answer
from pdt.teacher.batch import Batches, Waiting
from pdt.teacher.budget import Budget, BudgetSpent, worst_cost
from pdt.teacher.call import Call, NotAnswered
from pdt.teacher.checks import Failures
from pdt.teacher.chronicle import Chronicle
from pdt.teacher.chronicle.teacher import ChronicleTeacher
from pdt.teacher.document import TaughtDocument
from pdt.teacher.drafts import AnswerDraft, FactsDraft, reply_schema
from pdt.teacher.endpoint import Endpoint
from pdt.teacher.interface import Taught, Teacher, TeachingSource, Untaught, teach
from pdt.teacher.journal import Journal, Replay
from pdt.teacher.passage import find_passage
from pdt.teacher.place import place_answer, place_facts
from pdt.teacher.prompted import PromptedTeacher
from pdt.teacher.trouble import TeacherFailed
from pdt.terms import Split, TeacherPass
from pdt.tokenizer import load_tokenizer
from tests.teacher_server import TeacherServer, answer_draft, facts_draft, serving

KEY = "sk-test-Zx81qPlm00secret"


@cache
def documents(count: int = 6) -> list[TaughtDocument]:
    dials = turn_dials("nano", ["coined_share=0"])
    chronicle = Chronicle(5, Split.TRAIN, dials, nano_meter())
    return [chronicle.document(index).taught for index in range(count)]


def source_of(document: TaughtDocument) -> TeachingSource:
    return TeachingSource(**{name: getattr(document, name) for name in TeachingSource.model_fields})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TeacherServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(documents()) as running:
        yield running


def settings(server: TeacherServer, *more: str) -> PdtConfig:
    return load_config(
        "nano",
        overrides=[
            "teacher.kind=endpoint",
            f"teacher.endpoint.base_url={server.url}",
            "teacher.endpoint.model=demo",
            "teacher.endpoint.price_in=1",
            "teacher.endpoint.price_out=4",
            "teacher.endpoint.first_wait=0.01",
            "teacher.endpoint.timeout=2.5",
            "teacher.endpoint.max_output_tokens=4096",
            "teacher.budget=10",
            "teacher.batch.poll=0.02",
            *more,
        ],
    )


def check_with(config: PdtConfig) -> Any:
    tokenizer = load_tokenizer(config.records.tokenizer)
    return lambda document: check_document(document, config, tokenizer)


def open_teacher(config: PdtConfig, calls: Path) -> PromptedTeacher:
    budget = Budget(calls / "ledger.jsonl", config.teacher.budget or 0.0)
    return PromptedTeacher(
        Endpoint(config.teacher, Journal(calls), budget), config, check_with(config)
    )


def in_order(answer: Answer) -> dict[str, Any]:
    """The answer with its roles by fact; Chronicle lists them in the order of its world."""
    roles = {roles.fact_id: roles.lanes for roles in answer.roles}
    return {**dict(answer), "roles": roles}


def spent(calls: Path) -> float:
    return Budget(calls / "ledger.jsonl", 1e9).spent


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("name", curated_names())
def test_a_draft_without_offsets_gives_back_a_hand_written_record_whole(name: str) -> None:
    document = read_curated(name).taught
    found = Failures(document.record_id)
    facts = place_facts(FactsDraft.model_validate(facts_draft(document)), document.article, found)
    draft = AnswerDraft.model_validate(answer_draft(document))
    answer = place_answer(draft, document.inventory, found, lanes=3)
    assert found.found == []
    assert facts == document.inventory
    assert answer is not None
    renamed = {link.id: f"d{n}" for n, link in enumerate(document.answer.dependencies, start=1)}
    expected = document.answer.model_dump_json()
    for old in sorted(renamed, key=len, reverse=True):
        expected = expected.replace(f'"{old}"', f'"{renamed[old]}"')
    got = json.loads(answer.model_dump_json())
    for mine, theirs in zip(got["dependencies"], json.loads(expected)["dependencies"], strict=True):
        mine["coined"] = theirs["coined"]  # a model cannot know what a choice was drawn from
    assert got == json.loads(expected)


def test_a_passage_is_found_whatever_its_dashes_and_stored_as_the_text_has_it() -> None:
    text = "He said\u00a0\u201cwe march\u201d \u2013 in 1812\u20131814.  Then once more: we march."
    quote = find_passage(text, '"we march" - in 1812-1814')
    assert quote is not None and quote.matches(text) and "\u2013" in quote.text
    assert find_passage(text, "we march.") is not None
    last = find_passage(text, "we march", near=[(40, len(text))])
    assert last is not None and last.start > 40
    assert find_passage(text, "We march") is None, "another word, another passage"
    assert find_passage(text, " ") is None


def test_every_field_of_a_reply_is_required_and_nothing_else_is_allowed() -> None:
    for draft in (FactsDraft, AnswerDraft):
        schema = reply_schema(draft)
        for node in (schema, *schema["$defs"].values()):
            if node["type"] == "object":
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])


def test_prompts_hold_the_contracts_own_numbers() -> None:
    text = prompts.instructions(TeacherPass.EXTRACT_FACTS, load_config("canonical"))
    assert "between 18 and 48" in text and "at least 12 different paragraphs" in text
    text = prompts.instructions(TeacherPass.COMPOSE_ANSWER, load_config("canonical"))
    assert "700 to 1000 tokens" in text and "4 to 8 `nodes`" in text and "{" not in text
    other = load_config("canonical", overrides=["records.limits.plan_nodes.max=6"])
    assert "4 to 6 `nodes`" in prompts.instructions(TeacherPass.COMPOSE_ANSWER, other)


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
    old = prompts.prompt_text
    with monkeypatch.context() as patch:
        patch.setattr("pdt.teacher.prompted.prompt_text", lambda name: old(name) + "!")
        assert asks() == 1
    with monkeypatch.context() as patch:
        changed = {**reply_schema(FactsDraft), "title": "Other"}
        patch.setattr("pdt.teacher.prompted.reply_schema", lambda draft: changed)
        assert asks() == 1
    assert asks() == 0
    call = one_call(settings(server))
    assert Call(**{**call.model_dump(), "code": "pdt.teacher/0"}).key != call.key


def test_a_budget_is_never_exceeded_whatever_the_concurrency(
    server: TeacherServer, tmp_path: Path
) -> None:
    config = settings(server)
    call = one_call(config)
    worst = worst_cost(call, config.teacher.endpoint)
    server.delay = 0.05
    # Room for two at their worst; settled ones make room for more, one after another.
    limit = 2.5 * worst
    budget = Budget(tmp_path / "ledger.jsonl", limit)
    client = Endpoint(config.teacher, Journal(tmp_path), budget)
    calls = [Call(**{**call.model_dump(), "attempt": number}) for number in range(24)]
    seen: list[float] = []
    with ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(client.complete, one) for one in calls]
        while not all(future.done() for future in futures):
            seen.append(budget.spent)
            time.sleep(0.01)
    failed = [future for future in futures if future.exception()]
    assert all(isinstance(future.exception(), BudgetSpent) for future in failed)
    assert max(seen) <= limit and budget.spent <= limit
    assert server.most_active == 2
    assert len(server.asked) == 24 - len(failed) >= 2


def one_call(config: PdtConfig) -> Call:
    waiting = Waiting(Journal(Path("/nonexistent")))
    teacher = PromptedTeacher(waiting, config, check_with(config))
    with pytest.raises(NotAnswered):
        teacher.extract_facts(source_of(documents()[0]))
    return next(iter(waiting.pending.values()))


def test_processes_share_one_budget_and_a_torn_line_is_no_reservation(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    one, two = Budget(ledger, 10.0), Budget(ledger, 10.0)
    first = one.reserve("a" * 64, 6.0)
    with pytest.raises(BudgetSpent, match=r"The budget of 10 is used up: 6\.0000 spent"):
        two.reserve("b" * 64, 6.0)
    one.settle(first, 1.0)
    second = two.reserve("b" * 64, 6.0)
    with ledger.open("ab") as file:
        file.write(b'{"event": "reserve", "hold": "x", "co')
    assert one.spent == 7.0
    two.lose(second, "timeout")
    one.settle(second, 1.0)
    assert one.spent == two.spent == 7.0, "a hold is closed once"
    assert Budget(ledger, 10.0).spent == 7.0


def test_a_reply_on_disk_settles_what_a_killed_process_had_set_aside(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    killed = Budget(ledger, 10.0)
    killed.reserve("a" * 64, 6.0)
    killed.reserve("b" * 64, 3.0)
    budget = Budget(ledger, 10.0)
    budget.recover({"a" * 64: 0.5}.get)
    assert budget.spent == 3.5


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


def test_a_batch_gives_what_single_calls_give_at_its_own_price(
    server: TeacherServer, tmp_path: Path
) -> None:
    config = settings(server, "teacher.batch.calls=4")
    single = [
        teach(open_teacher(config, tmp_path / "single"), source_of(document))
        for document in documents()
    ]
    server.faults = ["", "500", "breaks_rule"]
    batched = in_batches(config, tmp_path / "batch")
    for one, other in zip(single, batched, strict=True):
        assert isinstance(one, Taught) and isinstance(other, Taught)
        assert one.value.answer == other.value.answer
    # Facts in two files, the failed call and the repair in a third, then the answers.
    assert len(server.batches) >= 4
    assert len(server.paid) == 2 * len(single) + 2 * len(single) + 1
    costs = sum(attempt.cost for taught in batched for attempt in taught.attempts)
    assert spent(tmp_path / "batch") == pytest.approx(costs)
    assert costs < 0.7 * spent(tmp_path / "single")


def in_batches(config: PdtConfig, calls: Path) -> list[Any]:
    journal, check = Journal(calls), check_with(config)
    budget = Budget(calls / "ledger.jsonl", 10.0)
    batches = Batches(calls / "batches", config.teacher, journal, budget)
    while True:
        waiting, results = Waiting(journal), []
        teacher = PromptedTeacher(waiting, config, check)
        for document in documents():
            try:
                results.append(teach(teacher, source_of(document)))
            except NotAnswered:
                continue
        if not waiting.pending:
            return results
        batches.answer(list(waiting.pending.values()))


@pytest.mark.parametrize("step", ["files.create", "batches.create", "batches.retrieve", "collect"])
def test_a_batch_killed_at_any_step_is_taken_up_and_not_submitted_twice(
    server: TeacherServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    config = settings(server)

    class Killed(BaseException):
        pass

    def kill(*arguments: object, **named: object) -> None:
        raise Killed

    call, journal = one_call(config), Journal(tmp_path)
    budget = Budget(tmp_path / "ledger.jsonl", 10.0)
    batches = Batches(tmp_path / "batches", config.teacher, journal, budget)
    with monkeypatch.context() as patch:
        if step == "collect":
            patch.setattr(batches, "_collect", kill)
        elif step == "batches.create":  # the server has it; we never heard

            def create_and_die(**named: Any) -> None:
                type(batches._sdk.batches).create(batches._sdk.batches, **named)
                raise Killed

            patch.setattr(batches._sdk.batches, "create", create_and_die)
        else:
            noun, verb = step.split(".")
            patch.setattr(getattr(batches._sdk, noun), verb, kill)
        with pytest.raises(Killed):
            batches.answer([call])
    again = Batches(
        tmp_path / "batches", config.teacher, journal, Budget(tmp_path / "ledger.jsonl", 10.0)
    )
    assert again.answer([call]) == 1
    assert len(server.batches) == 1 and len(server.paid) == 1
    reply = journal.get(call)
    assert reply is not None and spent(tmp_path) == pytest.approx(reply.cost)


def test_calls_at_a_time_are_as_many_as_threads_ask(server: TeacherServer, tmp_path: Path) -> None:
    server.delay = 0.1
    teacher = open_teacher(settings(server), tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda d: teach(teacher, source_of(d)), documents()))
    assert all(isinstance(result, Taught) for result in results)
    assert server.most_active == 4
    assert threading.active_count() < 40
