"""Arrays inside a strict record: a dtype and named axes, checked when a record is made.

A field `role_KUF: Annotated[np.ndarray, Axes("KUF", "int8")]` says that all arrays of one record
agree on how many lanes, blocks and facts there are. JSON Schema, the Parquet schema and the padding
of a batch are all read off these marks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

PAD = -1
"""No token, no block, no node: what fills a shorter lane up to the longest."""

LEGEND = {
    "K": "lanes",
    "S": "prompt positions",
    "T": "section positions, EOS included",
    "U": "blocks",
    "N": "plan nodes, padded",
    "F": "facts",
    "R": "dependencies",
    "J": "dependency edges",
    "E": "encoder width",
    "P": "planner width",
}
"""The axes of a record."""


@dataclass(frozen=True)
class Axes:
    """The axes and the dtype of an array field."""

    letters: str
    dtype: str

    def validate(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.size == 0:
            array = array.astype(self.dtype).reshape(
                array.shape if array.ndim == len(self.letters) else (0,) * len(self.letters)
            )
        if array.ndim != len(self.letters):
            raise ValueError(f"has {array.ndim} axes, expected {' '.join(self.letters)}")
        if not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise ValueError(f"holds {array.dtype}, expected {self.dtype}")
        array = np.ascontiguousarray(array, dtype=self.dtype)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError("holds a number that is not finite")
        array.flags.writeable = False
        return array

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda array: array.tolist()
            ),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        kinds = {"f": "number", "i": "integer", "b": "boolean"}
        node: JsonSchemaValue = {"type": kinds[np.dtype(self.dtype).kind]}
        for letter in reversed(self.letters):
            node = {"type": "array", "items": node, "title": f"{letter}: {LEGEND[letter]}"}
        return {**node, "dtype": self.dtype}


@cache
def axes_of(model: type[BaseModel]) -> dict[str, Axes]:
    """The array fields of a record model, in order."""
    return {
        name: mark
        for name, field in model.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, Axes)
    }


def sizes_of(record: BaseModel) -> dict[str, int]:
    """How long each axis is; two arrays that disagree are an error."""
    sizes: dict[str, tuple[str, int]] = {}
    for name, letter, size in _measured(record):
        first, known = sizes.setdefault(letter, (name, size))
        if known != size:
            raise ValueError(
                f"{name} has {size} {LEGEND[letter]} ({letter}), but {first} has {known}"
            )
    return {letter: size for letter, (_, size) in sizes.items()}


def _measured(record: BaseModel) -> Iterator[tuple[str, str, int]]:
    for name, axes in axes_of(type(record)).items():
        yield from (
            (name, letter, size)
            for letter, size in zip(axes.letters, getattr(record, name).shape, strict=True)
        )
