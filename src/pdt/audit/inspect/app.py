"""The pages of `pdt record review --browser`: a record as `pdt record show` draws it, to judge.

Verdicts go to the same log as those of the terminal, each of exactly the record that was shown.

Paper: §4.3.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fastapi import Form
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from starlette.responses import Response
from starlette.types import ASGIApp

from pdt.audit.web.serve import listen
from pdt.config import PdtConfig
from pdt.errors import ContractBroken
from pdt.records.review import ReviewLog, document_sha256
from pdt.records.show.html import page_part, render_body
from pdt.records.show.view import view_document
from pdt.teacher.document import TaughtDocument
from pdt.terms import Inspection
from pdt.tokenizer import StudentTokenizer, load_tokenizer
from pdt.web.app import guarded, new_app
from pdt.web.headers import POLICY
from pdt.web.keys import Keys
from pdt.web.pages import Pages
from pdt.web.refusals import Refusal
from pdt.web.run import server_of

PACKAGE = "pdt.audit.inspect"
HOST = "127.0.0.1"
LONGEST_REASON = 400
Text = Annotated[str, Form(max_length=LONGEST_REASON)]


@dataclass(frozen=True)
class Inspecting:
    """The records that one person looks at."""

    documents: Sequence[TaughtDocument]
    reviews: Path
    reviewer: str
    config: PdtConfig

    @cached_property
    def by_id(self) -> dict[str, TaughtDocument]:
        return {document.record_id: document for document in self.documents}

    @cached_property
    def tokenizer(self) -> StudentTokenizer:
        return load_tokenizer(self.config.records.tokenizer)

    def log(self) -> ReviewLog:
        """As it is now: others may be at work."""
        return ReviewLog(self.reviews)

    def next_after(self, record: str | None, log: ReviewLog) -> str | None:
        """The next record that nobody has inspected, round and round."""
        names = [document.record_id for document in self.documents]
        start = names.index(record) + 1 if record in names else 0
        for name in names[start:] + names[:start]:
            if name != record and log.of(self.by_id[name]) is None:
                return name
        return None


def inspection_app(room: Inspecting) -> ASGIApp:
    """The application behind its guards; it answers on this machine alone."""
    app, pages = new_app("pdt record review", package=PACKAGE, documented=False), Pages(PACKAGE)

    @app.get("/")
    def start() -> Response:
        log = room.log()
        first = room.next_after(None, log)
        return pages.page("done.html", **_state(room, log)) if first is None else _to(first)

    @app.get("/done")
    def done() -> Response:
        return pages.page("done.html", **_state(room, room.log()))

    @app.get("/record/{record}")
    def show(record: str) -> Response:
        document, log = _document(room, record), room.log()
        review = log.of(document)
        page = pages.page(
            "record.html",
            **_state(room, log),
            record=record,
            sha256=document_sha256(document),
            review=review,
            changed=log.changed(document),
            following=room.next_after(record, log),
            body=Markup(render_body(view_document(document, room.config, room.tokenizer))),
            longest=LONGEST_REASON,
        )
        # The drawing sets its columns and arrows by attributes of its own.
        page.headers["content-security-policy"] = POLICY.replace(
            "style-src 'self'", "style-src 'self' 'unsafe-inline'"
        )
        return page

    @app.post("/verdict")
    def verdict(record: Text, sha256: Text, said: Text, reason: Text = "") -> Response:
        document = _document(room, record)
        if sha256 != document_sha256(document):
            raise Refusal(409, "The record is not the one that the page showed. Look at it again.")
        try:
            chosen = Inspection(said)
        except ValueError:
            raise Refusal(400, "Accept or reject it.") from None
        reason = " ".join(reason.split())
        if not reason and chosen is Inspection.REJECTED:
            raise Refusal(400, "A rejection needs a reason. Go back and say why.")
        log = room.log()
        try:
            log.add(
                document, chosen, reviewer=room.reviewer, reason=reason or "nothing found wrong"
            )
        except ContractBroken as error:
            raise Refusal(400, str(error)) from error
        following = room.next_after(record, log)
        return _to(following) if following else RedirectResponse("/done", 303)

    @app.get("/drawing/{name}")
    def drawing(name: str) -> Response:
        kinds = {"page.css": "text/css", "page.js": "text/javascript"}
        if name not in kinds:
            raise Refusal(404, "There is no such file.")
        return Response(page_part(name), media_type=kinds[name])

    return guarded(app, host=HOST, keys=Keys([]), body_bytes=16 << 10, forms=("/verdict",))


def serve_inspection(room: Inspecting, *, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted."""
    listening = listen(HOST, port)
    say(f"{room.reviewer} inspects at http://{HOST}:{listening.getsockname()[1]}; Ctrl-C ends it")
    server_of(inspection_app(room), host=HOST, port=port).run([listening])


def _document(room: Inspecting, record: str) -> TaughtDocument:
    if record not in room.by_id:
        raise Refusal(404, f"There is no record {record[:80]!r} here.")
    return room.by_id[record]


def _state(room: Inspecting, log: ReviewLog) -> dict[str, Any]:
    """How far the inspection is, by category."""
    rows: dict[str, Counter[str]] = {}
    for document in room.documents:
        review = log.of(document)
        state = "left" if review is None else review.verdict.value
        rows.setdefault(document.category, Counter())[state] += 1
    left = sum(row["left"] for row in rows.values())
    return {
        "rows": sorted(rows.items()),
        "total": len(room.documents),
        "left": left,
        "reviewer": room.reviewer,
    }


def _to(record: str) -> RedirectResponse:
    return RedirectResponse(f"/record/{record}", 303)
