"""The budget: set aside before a call is sent, shared by threads and processes, never exceeded."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pdt.teacher.budget import Budget, BudgetSpent, worst_cost
from pdt.teacher.call import Call
from pdt.teacher.endpoint import Endpoint
from pdt.teacher.journal import Journal
from tests.support.teacher_server import TeacherServer
from tests.support.teaching import one_call, settings


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
