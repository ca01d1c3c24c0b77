"""Every stored shape by name, as JSON Schema and as the pages of docs/data-contract.md."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pdt.contract import Contract
from pdt.records.arrays import LEGEND, axes_of
from pdt.records.pilot import Pilot
from pdt.records.pipeline.run import BuildReport, Rejection
from pdt.records.pipeline.teaching import UntaughtSource
from pdt.records.report import CorpusReport, ShardReport
from pdt.records.review import Review
from pdt.records.schema import TrainingRecord
from pdt.sources.article import Article
from pdt.sources.assessments import Assessments
from pdt.sources.bundle import SourceBundle
from pdt.sources.candidates import Candidate
from pdt.sources.splits import SplitLedger
from pdt.sources.verdict import AcceptedSource, RejectedSource, SourceVerdict
from pdt.teacher.answer import Answer
from pdt.teacher.checks import BUNDLE_RULES, REPLY_RULES, RULES, CheckFailure
from pdt.teacher.document import TaughtDocument
from pdt.teacher.facts import FactInventory
from pdt.teacher.journal import Transcript

CONTRACTS: dict[str, type[Contract]] = {
    kind.__name__: kind
    for kind in (
        Candidate,
        SourceBundle,
        Assessments,
        Article,
        SourceVerdict,
        SplitLedger,
        AcceptedSource,
        RejectedSource,
        FactInventory,
        Answer,
        TaughtDocument,
        TrainingRecord,
        CheckFailure,
        ShardReport,
        CorpusReport,
        Transcript,
        UntaughtSource,
        Rejection,
        BuildReport,
        Review,
        Pilot,
    )
}
"""In the order in which a document meets them."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one contract."""
    schema = CONTRACTS[name].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def contract_page() -> str:
    """docs/data-contract.md, from the field docs."""
    parts = [_INTRODUCTION.strip()]
    seen: set[type[BaseModel]] = set()
    for kind in CONTRACTS.values():
        parts += _sections(kind, seen, level=2)
    parts.append("## Axes of a record\n")
    parts += [_table(("letter", "axis"), [(f"`{k}`", v) for k, v in LEGEND.items()])]
    parts.append(
        "## Rules\n\nA document that breaks one is left out whole; all failures are listed.\n"
    )
    rules = [
        (f"`{name}`", rule.passage, rule.sentence)
        for name, rule in {**RULES, **BUNDLE_RULES, **REPLY_RULES}.items()
    ]
    parts.append(_table(("rule", "from", "what must hold"), rules))
    return "\n\n".join(part.strip() for part in parts) + "\n"


_INTRODUCTION = """
# The data contract

Generated from the field docs by `python tools/data_contract.py`; a test fails when it drifts.

A source becomes a training record in four shapes: `SourceBundle` (raw, immutable), `Article` (what
a model may see), `FactInventory` and `Answer` (the teacher's two stages; with the article a
`TaughtDocument`, one line of a `.jsonl` file), and `TrainingRecord` (one row of a Parquet shard).
Every shape is versioned and refuses fields it does not know. `pdt record schema NAME` prints JSON
Schema.

Characters are Unicode characters counted from 0; a span ends one past its last character. Offsets
of a fact's quote count the text of its source paragraph; offsets of a role's or dependency's quote
count the section's text, whose paragraphs are joined by an empty line. Lanes, nodes, paragraphs and
blocks count from 0. The numbers behind "limits" are in `presets/*.yaml` under `records.limits`.

A shard stores each array row by row as one list column; its shape is read off its axes, whose sizes
are the columns `size_K`, `size_F`, … of the same row.
"""


def _sections(kind: type[BaseModel], seen: set[type[BaseModel]], *, level: int) -> list[str]:
    if kind in seen:
        return []
    seen.add(kind)
    arrays = axes_of(kind)
    rows = []
    for name, field in kind.model_fields.items():
        described = " ".join((field.description or "").split())
        if not described:
            raise ValueError(f"{kind.__name__}.{name} has no field doc")
        if name in arrays:
            shown = f"{arrays[name].dtype} [{', '.join(arrays[name].letters)}]"
        else:
            shown = _type_name(field)
        rows.append((f"`{name}`", shown, described))
    first = " ".join((kind.__doc__ or "").split())
    parts = [
        f"{'#' * level} {kind.__name__}\n\n{first}",
        _table(("field", "type", "meaning"), rows),
    ]
    for field in kind.model_fields.values():
        for inner in _models(field.annotation):
            if inner.__name__ not in CONTRACTS:
                parts += _sections(inner, seen, level=3)
    return parts


def _type_name(field: FieldInfo) -> str:
    text = _name(field.annotation)
    if not field.is_required():
        default = field.get_default(call_default_factory=True)
        if default not in (None, (), {}):
            return f"{text}, default `{default}`"
        return f"{text}, optional"
    return text


def _name(annotation: Any) -> str:
    arguments = [a for a in get_args(annotation) if a is not Ellipsis]
    origin = str(getattr(annotation, "__origin__", ""))
    if "Literal" in str(annotation) and arguments:
        return "text"
    if "Annotated" in str(type(annotation)):
        return _name(arguments[0])
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " / ".join(str(value) for value in annotation)
    if isinstance(annotation, type) and not arguments:
        return _PLAIN.get(annotation.__name__, annotation.__name__)
    if "dict" in origin:
        return f"map of {_name(arguments[0])} to {_name(arguments[1])}"
    if "tuple" in origin and len(arguments) > 1:
        return "(" + ", ".join(_name(a) for a in arguments) + ")"
    if "tuple" in origin or "list" in origin:
        return f"list of {_name(arguments[0])}"
    named = [_name(a) for a in arguments if a is not type(None)]
    return " or ".join(named) if named else "any JSON value"


_PLAIN = {
    "str": "text",
    "int": "integer",
    "float": "number",
    "AwareDatetime": "date and time with zone",
}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )
