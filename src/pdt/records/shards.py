"""Records as Parquet: one flat list column per array, sizes beside it, the binding in the footer.

An array is stored row by row; its shape is read off its axes, whose sizes are columns `size_K`,
`size_F`, … of the same row.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pdt.contract import parse_contract
from pdt.errors import ContractBroken, CorruptFile
from pdt.parse import parse_json
from pdt.provenance import atomic_path
from pdt.records.arrays import LEGEND, axes_of
from pdt.records.schema import RECORD_VERSION, TrainingRecord

ARRAYS = axes_of(TrainingRecord)
LISTS = ("dependency_ids", "coined_choice_ids")
TEXTS = tuple(
    name for name in TrainingRecord.model_fields if name not in ARRAYS and name not in LISTS
)
ROW_GROUP = 64
BINDING = b"pdt.binding"
VERSION = b"pdt.schema_version"


def arrow_schema() -> pa.Schema:
    """The columns of a shard, in order."""
    kinds = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float32": pa.float32()}
    kinds["bool"] = pa.bool_()
    fields = [pa.field(name, pa.string(), nullable=False) for name in TEXTS]
    fields += [pa.field(f"size_{letter}", pa.int32(), nullable=False) for letter in LEGEND]
    fields += [pa.field(name, pa.list_(pa.string()), nullable=False) for name in LISTS]
    fields += [
        pa.field(name, pa.list_(kinds[axes.dtype]), nullable=False, metadata={"axes": axes.letters})
        for name, axes in ARRAYS.items()
    ]
    return pa.schema(fields)


def write_shard(path: Path, records: Sequence[TrainingRecord], binding: dict[str, Any]) -> None:
    """Write the records in one atomic step; the same records give the same bytes."""
    schema = arrow_schema()
    sizes = [record.sizes for record in records]
    columns: list[pa.Array] = []
    for field in schema:
        name = field.name
        if name in ARRAYS:
            columns.append(_list_column([getattr(r, name) for r in records], field.type))
        elif name.startswith("size_"):
            columns.append(pa.array([size[name[-1]] for size in sizes], field.type))
        else:
            columns.append(pa.array([_plain(getattr(r, name)) for r in records], field.type))
    footer = {
        VERSION: RECORD_VERSION.encode(),
        BINDING: json.dumps(binding, sort_keys=True).encode(),
    }
    table = pa.Table.from_arrays(columns, schema=schema.with_metadata(footer))
    with atomic_path(path) as partial:
        pq.write_table(table, partial, compression="zstd", row_group_size=ROW_GROUP)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value)


def _list_column(arrays: Sequence[np.ndarray], kind: pa.DataType) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum([array.size for array in arrays])]).astype(np.int32)
    flat = [array.reshape(-1) for array in arrays]
    values = pa.array(np.concatenate(flat) if flat else [], kind.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind)


class Shard:
    """One Parquet file of records, opened and its version checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise CorruptFile(
                f"{path} cannot be read as Parquet: {error}\n"
                "The shard is truncated or damaged. Compile it again with --resume."
            ) from error
        footer = self._file.schema_arrow.metadata or {}
        version = footer.get(VERSION, b"none").decode(errors="replace")
        if version != RECORD_VERSION:
            raise ContractBroken(
                f"{path} has schema version {version!r}; this pdt reads {RECORD_VERSION!r}.",
                "Compile the documents again, or use the pdt that wrote it.",
            )
        if not self._file.schema_arrow.equals(arrow_schema(), check_metadata=False):
            raise ContractBroken(
                f"{path} does not have the columns of {RECORD_VERSION}.",
                "It was not written by `pdt record compile`. Compile the documents again.",
            )
        self.binding = _binding(path, footer.get(BINDING, b""))

    def __len__(self) -> int:
        return self._file.metadata.num_rows

    def splits(self) -> list[str]:
        """The split of each record, in order, without reading anything else."""
        return self._column("split").to_pylist()

    def largest(self, name: str) -> int:
        """The greatest value of an integer array over all records."""
        return pc.max(pc.list_flatten(self._column(name))).as_py()

    def _column(self, name: str) -> pa.ChunkedArray:
        try:
            return self._file.read(columns=[name]).column(name)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CorruptFile:
        return CorruptFile(f"{self.path} is damaged: {error}\nCompile it again with --resume.")

    def rows(self, *, with_document: bool = True) -> Iterator[dict[str, Any]]:
        """Each record as a plain mapping, its arrays in shape; the document's text is optional."""
        names = [n for n in arrow_schema().names if with_document or n != "document"]
        try:
            for batch in self._file.iter_batches(batch_size=ROW_GROUP, columns=names):
                yield from _rows(batch)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def records(self) -> Iterator[TrainingRecord]:
        """Every record, validated."""
        for number, row in enumerate(self.rows()):
            where = f"{self.path} record {number} ({row.get('record_id')})"
            yield parse_contract(
                TrainingRecord, row, where=where, remedy="Compile the documents again."
            )


def _binding(path: Path, text: bytes) -> dict[str, Any]:
    try:
        return dict(parse_json(text))
    except (ValueError, TypeError) as error:
        raise ContractBroken(
            f"{path} does not say which tokenizer and encoder it was compiled with.",
            "It was changed after it was compiled. Compile the documents again.",
        ) from error


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    plain = {
        name: batch.column(name).to_pylist() for name in batch.schema.names if name not in ARRAYS
    }
    columns = {name: batch.column(name) for name in ARRAYS}
    offsets = {name: column.offsets.to_numpy() for name, column in columns.items()}
    values = {
        name: column.values.to_numpy(zero_copy_only=False) for name, column in columns.items()
    }
    for row in range(batch.num_rows):
        record: dict[str, Any] = {n: c[row] for n, c in plain.items() if not n.startswith("size_")}
        for name, axes in ARRAYS.items():
            flat = values[name][offsets[name][row] : offsets[name][row + 1]]
            shape = tuple(plain[f"size_{letter}"][row] for letter in axes.letters)
            if flat.size != int(np.prod(shape)):
                raise ContractBroken(
                    f"Record {record['record_id']}: {name} has {flat.size} values for the "
                    f"shape {shape}.",
                    "The shard was changed after it was compiled. Compile it again.",
                )
            record[name] = flat.reshape(shape)
        yield record
