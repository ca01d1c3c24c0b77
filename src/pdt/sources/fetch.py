"""From a candidate list to bundles: resumable, at most a few at a time, nothing taken twice.

A candidate is done when a bundle of its revision is in the directory; so a killed run repeats only
what was under way. What can never succeed is written to `failed.jsonl` with its reason and not
asked again; what failed for now is tried again by the next run.

Paper: §4.1.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pdt.config import SourcesConfig
from pdt.contract import Contract, Line, parse_contract
from pdt.errors import CorruptFile, FetchFailed, PdtError, SourceRefused
from pdt.parse import parse_json
from pdt.sources.bundle import METADATA, write_bundle
from pdt.sources.candidates import Candidate
from pdt.sources.wikimedia import (
    HttpAnswer,
    assemble,
    html_url,
    parse_revision,
    revision_url,
    talk_url,
)

BUNDLES = "bundles"
FAILED = "failed.jsonl"


class Asks(Protocol):
    """The client or its offline twin."""

    requests: int

    def get(self, url: str) -> HttpAnswer: ...

    def close(self) -> None: ...


class Failure(Contract):
    """A candidate that gave no bundle; a line of failed.jsonl."""

    schema_version: Literal["pdt.fetch_failure/1"] = "pdt.fetch_failure/1"
    """The version of this contract."""
    candidate: Line
    """Its wiki and revision."""
    title: Line
    """Its title."""
    reason: str
    """What was wrong and what to do."""


@dataclass
class FetchResult:
    """What a run did."""

    taken: list[Path] = field(default_factory=list)
    already: int = 0
    refused: list[Failure] = field(default_factory=list)
    """For good: written to failed.jsonl."""
    put_off: list[Failure] = field(default_factory=list)
    """For now: the next run tries again."""
    stopped: str | None = None
    """Why the run ended before its candidates did."""


def fetch_one(
    candidate: Candidate, asks: Asks, base: str, config: SourcesConfig
) -> dict[str, HttpAnswer]:
    """The answers for one candidate, in the order that refuses earliest."""
    lag = config.fetch.maxlag
    answers = {"revision": asks.get(revision_url(base, candidate.revision_id, lag))}
    revision = parse_revision(answers["revision"].body, candidate)
    answers["html"] = asks.get(html_url(base, candidate.revision_id))
    if revision.talk_page is not None:
        answers["talk"] = asks.get(talk_url(base, revision.talk_page, lag))
    return answers


def fetch_all(
    candidates: Sequence[Candidate],
    out: Path,
    asks: Asks,
    base_of: Callable[[str], str],
    config: SourcesConfig,
    *,
    progress: Callable[[int, str], None] = lambda done, title: None,
) -> FetchResult:
    """Take every candidate that is not there yet."""
    root = out / BUNDLES
    root.mkdir(parents=True, exist_ok=True)
    result = FetchResult()
    there = {(project, revision) for project, revision in held(root)}
    refused = {failure.candidate for failure in read_failures(out / FAILED)}
    todo = []
    for candidate in candidates:
        if (candidate.project, candidate.revision_id) in there or candidate.key in refused:
            result.already += 1
        else:
            todo.append(candidate)

    def take(candidate: Candidate) -> Path:
        answers = fetch_one(candidate, asks, base_of(candidate.project), config)
        bundle, raw = assemble(candidate, answers, config.html)
        return write_bundle(root, bundle, raw)

    with ThreadPoolExecutor(config.fetch.connections) as pool:
        for done, (candidate, future) in enumerate(_in_turn(pool, take, todo, result), start=1):
            progress(result.already + done, candidate.title)
            _settle(candidate, future, out, result)
    return result


def _in_turn(
    pool: ThreadPoolExecutor,
    take: Callable[[Candidate], Path],
    todo: Sequence[Candidate],
    result: FetchResult,
) -> Iterator[tuple[Candidate, Future[Path]]]:
    """Each candidate with its settled future; nothing new begins once the run was stopped."""
    waiting = iter(todo)
    running: dict[Future[Path], Candidate] = {}
    while True:
        while len(running) < pool._max_workers and result.stopped is None:
            candidate = next(waiting, None)
            if candidate is None:
                break
            running[pool.submit(take, candidate)] = candidate
        if not running:
            return
        settled, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in settled:
            yield running.pop(future), future


def _settle(candidate: Candidate, future: Future[Path], out: Path, result: FetchResult) -> None:
    try:
        result.taken.append(future.result())
    except SourceRefused as error:
        failure = _failure(candidate, error)
        result.refused.append(failure)
        with (out / FAILED).open("a", encoding="utf-8") as file:
            file.write(failure.model_dump_json() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except FetchFailed as error:
        result.put_off.append(_failure(candidate, error))
        if "asks us to wait" in str(error):
            result.stopped = str(error)


def held(root: Path) -> Iterator[tuple[str, int]]:
    """Wiki and revision of every bundle under `root`."""
    for path in root.glob(f"*/{METADATA}"):
        try:
            tree = parse_json(path.read_text(encoding="utf-8"))
            yield tree["project"], tree["revision_id"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CorruptFile(f"{path} cannot be read: {error}.\nRemove its directory.") from error


def read_failures(path: Path) -> list[Failure]:
    """Lines of failed.jsonl; a last line that a kill cut short is not counted."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        path.write_text("".join(lines), encoding="utf-8")
    return [
        parse_contract(Failure, line, where=f"{path}:{number}")
        for number, line in enumerate(lines, start=1)
    ]


def _failure(candidate: Candidate, error: PdtError) -> Failure:
    return Failure(candidate=candidate.key, title=candidate.title, reason=str(error))
