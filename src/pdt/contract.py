"""The base of every stored shape: strict, frozen, documented, and refused with file and record.

A contract is a pydantic model whose field docs are the string under each field; JSON Schema and
docs/data-contract.md are generated from them.
"""

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from pdt.config import Strict
from pdt.errors import ContractBroken
from pdt.parse import shown


class Contract(Strict):
    """A frozen node of stored data; a field it does not know is an error."""

    model_config = ConfigDict(use_attribute_docstrings=True)


_UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def _one_line(text: str) -> str:
    if text != text.strip():
        raise ValueError("has space at its ends; strip it")
    if (found := _UNPRINTED.search(text)) is not None:
        raise ValueError(f"holds the control or line character U+{ord(found[0]):04X}")
    return text


Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
"""A short name: letters, digits and . _ : - only."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 digest in lower-case hexadecimal."""

Line = Annotated[str, Field(min_length=1), AfterValidator(_one_line)]
"""One line of text: not empty, no space at its ends, no control characters or line breaks."""

Index = Annotated[int, Field(ge=0)]
"""A position that counts from 0."""

C = TypeVar("C", bound=Contract)


def parse_contract(
    kind: type[C], data: str | bytes | dict[str, Any], *, where: str, remedy: str | None = None
) -> C:
    """`data` as a `kind`, or one refusal that lists every field that is wrong."""
    try:
        if isinstance(data, dict):
            return kind.model_validate(data)
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise ContractBroken(
            "\n".join([f"{where} is not a {kind.__name__}.", *_lines(kind, error)]),
            remedy or f"`pdt record schema {kind.__name__}` prints what is expected.",
        ) from error


def _lines(kind: type[Contract], error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False)[:20]:
        path = ".".join(str(part) for part in problem["loc"]) or "document"
        message = problem["msg"].removeprefix("Value error, ")
        value = problem["input"]
        given = "" if isinstance(value, dict | list | tuple) else f" (value {shown(value)})"
        if path == "schema_version" and problem["type"] != "missing":
            known = kind.model_fields["schema_version"].default
            message, given = f"unknown schema version {shown(value)}; this pdt reads {known!r}", ""
        lines.append(f"  {path}: {message}{given}")
    if error.error_count() > 20:
        lines.append(f"  and {error.error_count() - 20} more")
    return lines
