"""Clients that others wrote: LangChain and `llm`, from a Python that has them.

PDT_CLIENTS names it: `python -m venv V && V/bin/pip install langchain-openai llm`, then
PDT_CLIENTS=V/bin/python.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdt.generation.settings import GenerationSettings
from tests.support.servers import REQUEST, SOURCE, served, tiny_writer
from tests.support.web_server import Site

PYTHON = os.environ.get("PDT_CLIENTS")
pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="PDT_CLIENTS names no Python with langchain-openai and llm"
)
LANGCHAIN = """
import sys
from langchain_openai import ChatOpenAI
url, source, request = sys.argv[1:]
asked = [("system", source), ("human", request)]
model = ChatOpenAI(base_url=url, api_key="none", model="tiny", max_tokens=24)
print(repr(model.invoke(asked).text))
print(repr("".join(chunk.text for chunk in model.stream(asked))))
# Whole: its stream of responses takes messages for sequential, and lanes are not.
model = ChatOpenAI(
    base_url=url, api_key="none", model="tiny", max_tokens=24, use_responses_api=True
)
print(repr(model.invoke(asked).text))
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served(tiny_writer()) as (site, _):
        yield site


@pytest.fixture(scope="module")
def expected() -> str:
    settings = GenerationSettings(max_tokens=24)
    return tiny_writer().generate(SOURCE, REQUEST, settings).documents[0].text


def said_by(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_langchain_reads_chat_whole_and_streamed_and_responses_whole(
    site: Site, expected: str
) -> None:
    assert PYTHON is not None
    lines = said_by(PYTHON, "-c", LANGCHAIN, f"{site.url}/v1", SOURCE, REQUEST).splitlines()
    assert lines == [repr(expected)] * 3


def test_llm_reads_the_document_whole_and_streamed(
    site: Site, expected: str, tmp_path: Path
) -> None:
    assert PYTHON is not None
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: tiny\n  model_name: tiny\n  api_base: {site.url}/v1\n"
    )
    ask = [PYTHON, "-m", "llm", "-m", "tiny", "-s", SOURCE, "-o", "max_tokens", "24", REQUEST]
    for more in ([], ["--no-stream"]):
        said = said_by(*ask, *more, LLM_USER_PATH=str(tmp_path), OPENAI_API_KEY="none")
        assert said.strip() == expected.strip()
