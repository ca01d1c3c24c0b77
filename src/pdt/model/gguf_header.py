"""The header of a GGUF file: its metadata and where each tensor lies, read in one pass.

The reader of the `gguf` package keeps an array of its own for every string of a vocabulary, which
takes seconds. Only little-endian files of versions 2 and 3 are read; a length that leads out of the
file is refused before anything is taken for it.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_DEEPEST = 4
ALIGNMENT = "general.alignment"


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies, and how."""

    shape: tuple[int, ...]
    """As Hugging Face has it: GGUF names the innermost axis first."""
    kind: int
    """ggml's type of its numbers."""
    offset: int
    """From the start of the data."""


class GGUFHeader:
    """What a GGUF file says of itself; `rows` gives a tensor's bytes."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError on anything that is not a whole header."""
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        try:
            self._read()
        except (struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"its header ends early or is damaged ({error})") from error

    def _read(self) -> None:
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version, tensors, fields = self._take("<I"), self._take("<Q"), self._take("<Q")
        if version not in (2, 3):
            raise ValueError(f"it has version {version}; 2 and 3 are read")
        self._check(tensors + fields, 8)
        self.fields: dict[str, Any] = {}
        for _ in range(fields):
            name = self._string()
            self.fields[name] = self._value(self._take("<I"))
        self.tensors: dict[str, StoredTensor] = {}
        for _ in range(tensors):
            name, axes = self._string(), self._take("<I")
            self._check(axes, 8)
            shape = tuple(self._take("<Q") for _ in range(axes))
            self.tensors[name] = StoredTensor(shape[::-1], self._take("<I"), self._take("<Q"))
        alignment = self.fields.get(ALIGNMENT, 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"its alignment is {alignment!r}")
        self._start = -(-self._at // alignment) * alignment

    def rows(self, tensor: StoredTensor, block: int, block_bytes: int) -> numpy.ndarray:
        """The tensor's bytes, one row for each of its own; a quantized row is a run of blocks."""
        *outer, inner = tensor.shape
        row_bytes = inner // block * block_bytes
        start = self._start + tensor.offset
        size = math.prod(outer) * row_bytes
        if inner % block or start + size > len(self._data):
            raise ValueError("a tensor lies outside of the file")
        flat = numpy.frombuffer(self._data, numpy.uint8, size, start)
        return flat.reshape(*outer, row_bytes)

    def _take(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _string(self) -> str:
        length = self._take("<Q")
        self._check(length, 1)
        text = self._data[self._at : self._at + length].decode("utf-8")
        self._at += length
        return text

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            if kind not in _SCALARS:
                raise ValueError(f"a field has the unknown type {kind}")
            return self._take(_SCALARS[kind])
        if depth == _DEEPEST:
            raise ValueError("its arrays nest too deeply")
        inner, count = self._take("<I"), self._take("<Q")
        if inner in _SCALARS:
            form = f"<{count}{_SCALARS[inner][1]}"
            self._check(count, struct.calcsize(_SCALARS[inner]))
            values = struct.unpack_from(form, self._data, self._at)
            self._at += struct.calcsize(form)
            return list(values)
        self._check(count, 4)
        return [self._value(inner, depth + 1) for _ in range(count)]

    def _check(self, count: int, least_bytes: int) -> None:
        if count * least_bytes > len(self._data) - self._at:
            raise ValueError("a length leads out of the file")
