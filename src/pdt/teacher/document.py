"""One source with its facts and its answer: a line of the JSONL files that are compiled.

Paper: §4.1, §4.2.
"""

from typing import Literal

from pydantic import Field, JsonValue

from pdt.contract import Contract, Id, Line
from pdt.sources.article import Article
from pdt.teacher.answer import Answer
from pdt.teacher.facts import FactInventory
from pdt.terms import Split


class TaughtBy(Contract):
    """Who wrote the facts and the answer."""

    name: Line
    """The generator, the teacher model, or `hand`."""
    version: Line
    """Its version or model revision."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """What made this answer repeatable: seed, size, prompt digest."""


class TaughtDocument(Contract):
    """The compiler's input: everything about one document, before tokens."""

    schema_version: Literal["pdt.document/1"] = "pdt.document/1"
    """The version of this contract."""
    record_id: Id
    """Unique in a corpus; the compiled record keeps it."""
    split: Split
    """Fixed before any teaching."""
    family_key: Id
    """Documents with one key (related pages, one world) share a split."""
    category: Id
    """The kind of history, one of the corpus's eight."""
    article: Article
    """The source as the model sees it."""
    inventory: FactInventory
    """Stage A."""
    answer: Answer
    """Stage B."""
    teacher: TaughtBy
    """Provenance of both stages."""
