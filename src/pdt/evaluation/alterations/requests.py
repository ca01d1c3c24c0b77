"""Requests that a person wrote, in place of the corpus's own wordings."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from pdt.evaluation.alterations.alteration import draws, event_of, with_request
from pdt.teacher.document import TaughtDocument

FILE = "requests.yaml"
_NAMED = re.compile(r"\bWith the [^.]*\bis named(?: again)?\.")
"""What a Chronicle request says of coined things: where the reader wants them named."""


@cache
def by_hand() -> dict[str, tuple[str, ...]]:
    """By division, every wording, with `{event}` for the event."""
    text = (resources.files("pdt.evaluation.alterations") / FILE).read_text(encoding="utf-8")
    return {division: tuple(forms) for division, forms in yaml.safe_load(text).items()}


def asked_by_hand(document: TaughtDocument, division: object) -> TaughtDocument | None:
    """The document with one of the wordings for this division; what is to be named stays said."""
    forms, event = by_hand().get(str(division), ()), event_of(document)
    if not forms or event is None:
        return None
    words = draws(document, "request").choice(forms).format(event=event)
    return with_request(document, " ".join([words, *_NAMED.findall(document.answer.request)]))


@dataclass(frozen=True)
class AskByHand:
    """The same division, asked for in a person's words."""

    def apply(self, document: TaughtDocument, other: TaughtDocument) -> TaughtDocument | None:
        return asked_by_hand(document, document.teacher.settings.get("division"))
