"""A real HTTP server that speaks the chat, file and batch protocol, and misbehaves.

`faults` is a list of what goes wrong next, one entry a request; afterwards every reply is right.
"""

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole, TeacherPass


def facts_draft(document: TaughtDocument) -> dict[str, Any]:
    """What a model would have to reply so that `document.inventory` comes out."""
    return {
        "facts": [
            {
                "id": fact.id,
                "paragraph_id": fact.paragraph_id,
                "quote": fact.quote.text,
                "citation_ids": list(fact.citation_ids),
                "statement": fact.statement,
                "hard_negative": fact.hard_negative.model_dump(mode="json"),
            }
            for fact in document.inventory.facts
        ]
    }


def answer_draft(document: TaughtDocument) -> dict[str, Any]:
    """What a model would have to reply so that `document.answer` comes out."""
    answer = document.answer
    quotes = {
        (roles.fact_id, lane): [quote.text for quote in role.quotes]
        for roles in answer.roles
        for lane, role in enumerate(roles.lanes)
        if role.role is not FactRole.ABSENT
    }

    def evidence(facts: Iterable[str], lane: int) -> list[dict[str, Any]]:
        return [{"fact_id": fact, "quotes": quotes.get((fact, lane), [])} for fact in facts]

    lanes = [
        {
            "nodes": [
                {
                    "objective": node.objective,
                    "owned_facts": evidence(node.owned_facts, lane),
                    "reference_facts": evidence(node.reference_facts, lane),
                    "paragraphs": [
                        answer.sections[lane].paragraphs[index] for index in node.target_paragraphs
                    ],
                }
                for node in plan.nodes
            ]
        }
        for lane, plan in enumerate(answer.plans)
    ]
    dependencies = [
        {
            "owner_lane": link.owner.lane,
            "owner_node": link.owner.node,
            "owner_quote": link.owner.quote.text,
            "receiver_lane": link.receiver.lane,
            "receiver_node": link.receiver.node,
            "receiver_quote": link.receiver.quote.text,
            "fact_id": link.fact_id,
        }
        for link in answer.dependencies
    ]
    return {
        "request": answer.request,
        "lanes": lanes,
        "presentation_order": list(answer.lane_at_position),
        "dependencies": dependencies,
    }


class TeacherServer(ThreadingHTTPServer):
    """What it was asked, in order, and what it will do wrong."""

    daemon_threads = True

    def __init__(self, documents: Iterable[TaughtDocument] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.drafts = {
            document.article.title: {
                TeacherPass.EXTRACT_FACTS: facts_draft(document),
                TeacherPass.COMPOSE_ANSWER: answer_draft(document),
            }
            for document in documents
        }
        self.faults: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.paid: list[str] = []
        """The idempotency keys of all calls that were answered with 200, in order."""
        self.at: list[float] = []
        self.active = self.most_active = 0
        self.delay = 0.0
        self.sends: int | None = None
        """How many answers it sends; what it keeps after that is paid all the same."""
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.polls_needed = 2
        self.guard = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def draft(self, body: dict[str, Any]) -> tuple[TeacherPass, dict[str, Any]]:
        teacher_pass = TeacherPass(body["response_format"]["json_schema"]["name"])
        content = body["messages"][1]["content"]
        title = content.split("\n\n")[1].removeprefix("# ")
        return teacher_pass, self.drafts[title][teacher_pass]

    def content(self, body: dict[str, Any], fault: str) -> str:
        teacher_pass, draft = self.draft(body)
        if fault == "invalid_json":
            return json.dumps(draft)[:-20]
        if fault == "breaks_rule":
            draft = json.loads(json.dumps(draft))
            if teacher_pass is TeacherPass.EXTRACT_FACTS:
                draft["facts"][0]["quote"] = "words that the source never had"
            else:
                owned = (node["owned_facts"] for node in draft["lanes"][0]["nodes"])
                next(filter(None, owned))[0]["quotes"] = ["not written"]
        if fault == "echo":
            draft = {**draft, "note": "x"}
        return json.dumps(draft, ensure_ascii=False)

    def completion(self, body: dict[str, Any], fault: str, extra: str = "") -> dict[str, Any]:
        text = self.content(body, fault) + extra
        refused = fault == "refusal"
        return {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"] + "-0801",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "length" if fault == "length" else "stop",
                    "message": {
                        "role": "assistant",
                        "content": None if refused else text,
                        "refusal": "I cannot." if refused else None,
                    },
                }
            ],
            "usage": {
                "prompt_tokens": len(json.dumps(body)) // 4,
                "completion_tokens": len(text) // 4,
                "total_tokens": (len(json.dumps(body)) + len(text)) // 4,
            },
        }


@contextmanager
def serving(documents: Iterable[TaughtDocument] = ()) -> Iterator[TeacherServer]:
    server = TeacherServer(documents)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: TeacherServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/files":
            self._upload(data)
        elif self.path == "/v1/batches":
            self._start_batch(json.loads(data))
        else:
            self._chat(json.loads(data))

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        if path == "/v1/batches":
            self._json(200, {"object": "list", "data": list(self.server.batches.values())})
        elif path.startswith("/v1/batches/"):
            self._json(200, self._batch(path.rsplit("/", 1)[1]))
        else:
            self._send(200, self.server.files[path.split("/")[3]])

    def _chat(self, body: dict[str, Any]) -> None:
        server = self.server
        with server.guard:
            server.asked.append(body)
            server.at.append(time.monotonic())
            fault = server.faults.pop(0) if server.faults else ""
            server.active += 1
            server.most_active = max(server.most_active, server.active)
        try:
            time.sleep(server.delay)
            self._fail(fault) if fault[:3].isdigit() else self._answer(body, fault)
        except OSError:
            pass  # the client did not wait
        finally:
            with server.guard:
                server.active -= 1

    def _fail(self, fault: str) -> None:
        status, _, wait = fault.partition(":")
        headers = {"Retry-After": wait} if wait else {}
        token = self.headers["Authorization"]
        message = f"Something is wrong with {token}"
        self._json(int(status), {"error": {"message": message, "code": None}}, headers)

    def _answer(self, body: dict[str, Any], fault: str) -> None:
        if fault == "slow":
            time.sleep(4)
        if fault == "no_json":
            self._send(200, b"<html>bad gateway</html>")
            return
        extra = self.headers["Authorization"] if fault == "echo" else ""
        reply = self.server.completion(body, fault, extra)
        if fault != "cut":
            with self.server.guard:
                self.server.paid.append(self.headers["Idempotency-Key"])
                sent = self.server.sends is None or len(self.server.paid) <= self.server.sends
            while not sent and self.server.sends is not None:
                time.sleep(0.01)
        if body.get("stream"):
            self._stream(reply, cut=fault == "cut")
        elif fault == "cut":
            data = json.dumps(reply).encode()
            self._headers(200, {"Content-Length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.close_connection = True
        else:
            self._json(200, reply)

    def _stream(self, reply: dict[str, Any], *, cut: bool) -> None:
        choice = reply["choices"][0]
        text, step = choice["message"]["content"] or "", 4000
        pieces = [text[start : start + step] for start in range(0, len(text), step)] or [""]
        deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces]
        deltas[-1]["refusal"] = choice["message"]["refusal"]
        self._headers(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        base = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": reply["model"]}
        for number, delta in enumerate(deltas):
            last = number == len(deltas) - 1
            if cut and last:
                break
            finish = choice["finish_reason"] if last else None
            self._event(
                {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            )
        if not cut:
            self._event({**base, "choices": [], "usage": reply["usage"]})
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def _upload(self, data: bytes) -> None:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        for part in message_from_bytes(head + data).get_payload():
            if part.get_param("name", header="content-disposition") == "file":  # type: ignore[union-attr]
                name = f"file-{len(self.server.files)}"
                self.server.files[name] = part.get_payload(decode=True)  # type: ignore[union-attr,assignment]
        self._json(200, {"id": name, "object": "file", "bytes": len(data), "created_at": 0,
                         "filename": "x", "purpose": "batch", "status": "processed"})  # fmt: skip

    def _start_batch(self, asked: dict[str, Any]) -> None:
        name = f"batch_{len(self.server.batches)}"
        self.server.batches[name] = {
            "id": name, "object": "batch", "status": "in_progress", "created_at": 0,
            "endpoint": asked["endpoint"], "completion_window": asked["completion_window"],
            "input_file_id": asked["input_file_id"], "metadata": asked["metadata"], "polls": 0,
        }  # fmt: skip
        self._json(200, self.server.batches[name])

    def _batch(self, name: str) -> dict[str, Any]:
        server, batch = self.server, self.server.batches[name]
        batch["polls"] += 1
        if batch["polls"] < server.polls_needed or batch["status"] == "completed":
            return batch
        lines = []
        for line in server.files[batch["input_file_id"]].decode().splitlines():
            entry = json.loads(line)
            fault = server.faults.pop(0) if server.faults else ""
            if fault.isdigit():
                response: dict[str, Any] = {"status_code": int(fault), "body": {}}
            else:
                response = {"status_code": 200, "body": server.completion(entry["body"], fault)}
                server.paid.append(entry["custom_id"])
            lines.append({"id": "r", "custom_id": entry["custom_id"], "response": response})
        output = f"file-{len(server.files)}"
        server.files[output] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        batch |= {
            "status": "completed",
            "output_file_id": output,
            "request_counts": {"total": len(lines), "completed": len(lines), "failed": 0},
        }
        return batch

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value).encode(), headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self._headers(
            status,
            {"Content-Length": str(len(data)), "Content-Type": "application/json"}
            | (headers or {}),
        )
        self.wfile.write(data)

    def _headers(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
