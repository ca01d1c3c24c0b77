"""The server's batch interface: a file of calls, an answer within a day, a lower price.

Each batch is a state file that says how far it came: written, uploaded, submitted, collected. A
killed run takes it up where it stood; a batch that was submitted just before the kill is found
again by the mark in its metadata, and not submitted twice.

Paper: §4.2.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pdt.config import TeacherConfig
from pdt.parse import parse_json
from pdt.provenance import atomic_path, read_json_object, sha256_json, write_json
from pdt.teacher.budget import Budget, worst_cost
from pdt.teacher.call import Call, NotAnswered, Reply
from pdt.teacher.endpoint import as_reply, check_settings, open_sdk, taken_from
from pdt.teacher.journal import Journal
from pdt.teacher.secret import Secret
from pdt.teacher.trouble import TeacherFailed, TryAgain, guarded

MARK = "pdt_batch"
BATCH = "batch-"
ENDPOINT = "/v1/chat/completions"
OVER = ("completed", "failed", "expired", "cancelled")


class Waiting:
    """A client that answers from the journal and remembers what it could not answer."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.pending: dict[str, Call] = {}

    def complete(self, call: Call) -> Reply:
        reply = self.journal.get(call)
        if reply is None:
            self.pending[call.key] = call
            raise NotAnswered(call)
        return reply


class Batches:
    """Batches of one directory of calls."""

    def __init__(
        self, directory: Path, config: TeacherConfig, journal: Journal, budget: Budget
    ) -> None:
        check_settings(config)
        self.directory = directory
        self.config = config
        self.journal = journal
        self.budget = budget
        self._secret = Secret.from_environment(config.endpoint.key_variable)
        self._sdk = open_sdk(config.endpoint, self._secret)
        budget.recover(self._never_written)

    def answer(
        self, calls: Sequence[Call], progress: Callable[[str], None] = lambda line: None
    ) -> int:
        """Have the calls answered, as far as the server does; how many are in the journal now."""
        self.directory.mkdir(parents=True, exist_ok=True)
        waiting = {call.key: call for call in calls}
        for path in self._open_states():  # of a killed run
            self._finish(path, progress)
        left = [call for key, call in sorted(waiting.items()) if self.journal.get(call) is None]
        size = self.config.batch.calls
        paths = [self._write(left[start : start + size]) for start in range(0, len(left), size)]
        for path in paths:
            self._submit(path)
        for path in paths:
            self._finish(path, progress)
        return sum(self.journal.get(call) is not None for call in calls)

    def _never_written(self, key: str) -> float | None:
        """Nothing was sent of a batch whose money was set aside and whose state is not there."""
        gone = key.startswith(BATCH) and not (self.directory / f"{key}.state.json").exists()
        return 0.0 if gone else None

    def _open_states(self) -> list[Path]:
        return [
            path
            for path in sorted(self.directory.glob("*.state.json"))
            if read_json_object(path)["step"] != "collected"
        ]

    def _write(self, calls: Sequence[Call]) -> Path:
        """The file to upload, with the worst case of all its calls set aside first."""
        keys = [call.key for call in calls]
        name = BATCH + sha256_json([keys, len(list(self.directory.iterdir()))])
        endpoint, share = self.config.endpoint, self.config.batch.price
        worst = sum(worst_cost(call, endpoint, share=share) for call in calls)
        hold = self.budget.reserve(name, worst)
        with atomic_path(self.directory / f"{name}.calls.jsonl") as partial:
            partial.write_text(
                "".join(call.model_dump_json() + "\n" for call in calls), encoding="utf-8"
            )
        path = self.directory / f"{name}.state.json"
        write_json(path, {"step": "written", "name": name, "hold": hold})
        return path

    def _submit(self, path: Path) -> None:
        state = read_json_object(path)
        if state["step"] == "written":
            lines = [
                {"custom_id": call.key, "method": "POST", "url": ENDPOINT, "body": call.body}
                for call in self._calls(state)
            ]
            data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
            file = self._patiently(
                lambda: self._sdk.files.create(
                    file=(f"{state['name']}.jsonl", data), purpose="batch"
                )
            )
            state |= {"step": "uploaded", "file": file.id}
            write_json(path, state)
        if state["step"] == "uploaded":
            batch = self._patiently(lambda: self._submitted(state)) or self._patiently(
                lambda: self._sdk.batches.create(
                    input_file_id=state["file"],
                    endpoint=ENDPOINT,
                    completion_window=self.config.batch.window,
                    metadata={MARK: state["name"]},
                )
            )
            state |= {"step": "submitted", "batch": batch.id}
            write_json(path, state)

    def _submitted(self, state: dict[str, Any]) -> Any:
        """The batch of this state, if a killed run had submitted it already."""
        seen: set[str] = set()
        for batch in self._sdk.batches.list(limit=100):
            if (batch.metadata or {}).get(MARK) == state["name"]:
                return batch
            if batch.id in seen:  # a server that does not know pages gives the first one again
                break
            seen.add(batch.id)
        return None

    def _finish(self, path: Path, progress: Callable[[str], None]) -> None:
        self._submit(path)
        state = read_json_object(path)
        while True:
            batch = self._patiently(lambda: self._sdk.batches.retrieve(state["batch"]))
            counts = batch.request_counts
            done = f"{counts.completed + counts.failed} of {counts.total} calls" if counts else ""
            progress(f"batch {state['batch']}: {batch.status} {done}".rstrip())
            if batch.status in OVER:
                break
            time.sleep(self.config.batch.poll)
        answered: dict[str, float] = {}
        for file in (batch.output_file_id, batch.error_file_id):
            if file:
                answered |= self._collect(state, self._patiently(self._content(file)))
        self.budget.settle(state["hold"], sum(answered.values()))
        if batch.status == "failed" and not answered:
            said = self._secret.hide(str(batch.errors))[:300]
            write_json(path, {**state, "step": "collected"})
            raise TeacherFailed(
                f"The server refused batch {state['batch']}: {said}\n"
                "Correct teacher.endpoint or teacher.batch, and run again with --resume."
            )
        write_json(path, {**state, "step": "collected"})

    def _content(self, file: str) -> Callable[[], bytes]:
        return lambda: self._sdk.files.content(file).read()

    def _collect(self, state: dict[str, Any], data: bytes) -> dict[str, float]:
        """Keep the replies of one file; what each cost, by its call's key."""
        calls = {call.key: call for call in self._calls(state)}
        answered = {}
        for line in data.splitlines():
            try:
                entry = parse_json(line)
                call, response = calls[entry["custom_id"]], entry.get("response") or {}
                if response.get("status_code") != 200:
                    continue
                taken = taken_from(response["body"])
            except (ValueError, KeyError, TypeError, TryAgain):
                continue  # an answer that cannot be read is asked for again
            endpoint, price = self.config.endpoint, self.config.batch.price
            reply = as_reply(call, taken, endpoint, self._secret, price)
            self.journal.put(call, reply)
            answered[call.key] = reply.cost
        return answered

    def _calls(self, state: dict[str, Any]) -> list[Call]:
        text = (self.directory / f"{state['name']}.calls.jsonl").read_text(encoding="utf-8")
        return [Call.model_validate_json(line) for line in text.splitlines()]

    def _patiently(self, do: Callable[[], Any]) -> Any:
        """One request about a batch, which costs nothing and may be repeated."""
        endpoint, why = self.config.endpoint, ""
        for number in range(endpoint.tries):
            try:
                return guarded(self._secret, do)
            except TryAgain as failure:
                why = str(failure)
                pause = min(endpoint.longest_wait, endpoint.first_wait * 2**number)
                time.sleep(max(failure.wait, pause))
        raise TeacherFailed(
            f"The server's batch interface failed {endpoint.tries} times; the last: {why}\n"
            "Nothing is lost. Run again with --resume."
        )
