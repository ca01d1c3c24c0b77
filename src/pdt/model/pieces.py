"""Safetensors files that several processes write together, each the rows it holds.

A sharded tensor is one run of rows along one axis on each rank. The file is laid out whole first;
then every rank writes its rows where they belong. What lies on disk is the plain file that one
process would have written, byte for byte, so it can be read at any number of ranks, or by anyone.
Nothing is gathered, and no pickle is involved.

Paper: §6 (checkpoints).
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

_NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.uint8: "U8",
}


@dataclass(frozen=True)
class Piece:
    """The rows of a tensor that this process holds: all of them, unless it is sharded."""

    shape: torch.Size
    axis: int
    start: int
    rows: Tensor
    shared: bool
    """Every rank holds the same: the first one writes it."""

    @classmethod
    def of(cls, tensor: Tensor) -> "Piece":
        if not hasattr(tensor, "placements"):  # asked so, for DTensor takes long to be loaded
            return cls(tensor.shape, 0, 0, tensor.detach(), shared=True)
        from torch.distributed.tensor import DTensor, Shard

        assert isinstance(tensor, DTensor)
        (placement,) = tensor.placements
        assert isinstance(placement, Shard)
        mesh, size = tensor.device_mesh, tensor.shape[placement.dim]
        start = min(size, mesh.get_local_rank() * -(-size // mesh.size()))
        return cls(tensor.shape, placement.dim, start, tensor.to_local().detach(), shared=False)


def lay_out(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """The file's header and its full length; the values are still to come."""
    header: dict[str, Any] = {}
    end = 0
    # Wide types first, then by name: every tensor is then aligned. The first begins a cache line,
    # for a model reads its weights where the file is mapped.
    for name, value in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        start, end = end, end + value.numel() * value.itemsize
        shape = list(value.shape)
        header[name] = {"dtype": _NAMES[value.dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    path.chmod(0o644)


def write_rows(path: Path, tensors: Mapping[str, Tensor], *, first: bool = True) -> None:
    """Put this process's rows into a file that was laid out; `first` writes what all share."""
    # Unbuffered: a buffer would write back what it read between two runs, over another rank's rows.
    with path.open("r+b", buffering=0) as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        for name, value in tensors.items():
            piece = Piece.of(value)
            if piece.rows.numel() == 0 or (piece.shared and not first):
                continue
            begin = 8 + length + header[name]["data_offsets"][0]
            # One run of bytes for each index before the sharded axis: for a lane bank, one a lane.
            lead = math.prod(piece.shape[: piece.axis])
            stride = math.prod(piece.shape[piece.axis :]) * value.itemsize
            inner = math.prod(piece.shape[piece.axis + 1 :]) * value.itemsize
            runs = piece.rows.cpu().contiguous().reshape(lead, -1).view(torch.uint8).numpy()
            for index, run in enumerate(runs):
                at, rest = begin + index * stride + piece.start * inner, run.data
                while rest:  # one call takes at most 2 GiB
                    done = os.pwrite(file.fileno(), rest, at)
                    at, rest = at + done, rest[done:]


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A whole file, by one process."""
    lay_out(path, tensors)
    write_rows(path, tensors)


def read_rows(path: Path, wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """For each name that the file has, the rows that the tensor like it holds on this process."""
    found: dict[str, Tensor] = {}
    with safe_open(path, framework="pt") as file:
        for name in wanted.keys() & set(file.keys()):
            like = wanted[name]
            piece = Piece.of(like)
            if piece.shared:
                found[name] = file.get_tensor(name).to(like.device)
                continue
            stop = piece.start + piece.rows.shape[piece.axis]
            rows = file.get_slice(name)[(slice(None),) * piece.axis + (slice(piece.start, stop),)]
            from torch.distributed.tensor import DTensor

            assert isinstance(like, DTensor)
            found[name] = DTensor.from_local(
                rows.to(like.device),
                like.device_mesh,
                like.placements,
                run_check=False,
                shape=like.shape,
                stride=like.stride(),
            )
    return found
