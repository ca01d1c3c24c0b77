"""What tests of the teacher share: documents to teach, a teacher on a local server, its books."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.config import PdtConfig, load_config
from pdt.records.checks import check_document
from pdt.teacher.answer import Answer
from pdt.teacher.batch import Waiting
from pdt.teacher.budget import Budget
from pdt.teacher.call import Call, NotAnswered
from pdt.teacher.document import TaughtDocument
from pdt.teacher.endpoint import Endpoint
from pdt.teacher.interface import TeachingSource
from pdt.teacher.journal import Journal
from pdt.teacher.prompted import PromptedTeacher
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer
from tests.support.teacher_server import TeacherServer

KEY = "sk-test-Zx81qPlm00secret"


@cache
def documents(count: int = 6) -> list[TaughtDocument]:
    dials = turn_dials("nano", ["coined_share=0"])
    chronicle = Chronicle(5, Split.TRAIN, dials, nano_meter())
    return [chronicle.document(index).taught for index in range(count)]


def source_of(document: TaughtDocument) -> TeachingSource:
    return TeachingSource(**{name: getattr(document, name) for name in TeachingSource.model_fields})


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


def one_call(config: PdtConfig) -> Call:
    waiting = Waiting(Journal(Path("/nonexistent")))
    teacher = PromptedTeacher(waiting, config, check_with(config))
    with pytest.raises(NotAnswered):
        teacher.extract_facts(source_of(documents()[0]))
    return next(iter(waiting.pending.values()))
