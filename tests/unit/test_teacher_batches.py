"""Batches: the same answers at their own price, and none submitted twice."""

from pathlib import Path
from typing import Any

import pytest

from pdt.config import PdtConfig
from pdt.teacher.batch import Batches, Waiting
from pdt.teacher.budget import Budget
from pdt.teacher.call import NotAnswered
from pdt.teacher.interface import Taught, teach
from pdt.teacher.journal import Journal
from pdt.teacher.prompted import PromptedTeacher
from tests.support.teacher_server import TeacherServer
from tests.support.teaching import (
    check_with,
    documents,
    one_call,
    open_teacher,
    settings,
    source_of,
    spent,
)


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
