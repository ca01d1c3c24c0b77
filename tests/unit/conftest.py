"""A server that speaks the teacher's protocol, for the tests that ask one."""

from collections.abc import Iterator

import pytest

from tests.support.teacher_server import TeacherServer, serving
from tests.support.teaching import KEY, documents


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TeacherServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(documents()) as running:
        yield running
