"""States of the frozen trunk on disk: one file a document, named by what it was computed from.

    DIRECTORY/3f/3f0c….safetensors    `prompt` [S, D] and `targets` [T, D], with a digest of each

The name is a digest of trunk, fork layer, number type, device and tokens, so another trunk or
another text is another file. A file is written beside and renamed; what does not have its digest is
as good as absent. Several processes may share a directory. At the limit nothing more is added:
with documents in random order, throwing out the oldest would throw out what comes next.

Paper: §3.1, §6.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pdt.config import TrunkCacheConfig
from pdt.errors import UsageError
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import sha256_json

FORM = 1
"""Changes when the way a document is run through the trunk does."""
_RECOUNTS = 64
"""A process counts the directory again when it has added this part of the limit."""
_ABANDONED = 3600
"""Seconds after which a half-written file belongs to no process any more."""


class TrunkCache:
    """A directory of trunk states that grows up to a limit.

    Paper: §3.1 (the trunk never changes).
    """

    def __init__(self, directory: Path, max_bytes: int, model: ParallelDecoder) -> None:
        identity = model.trunk_identity
        if identity is None:
            raise UsageError("The model has no weights yet: build it before its states are kept.")
        weight = model.trunk.norm.weight
        self.directory, self.max_bytes = directory, max_bytes
        self._bound = {
            "form": FORM,
            "trunk": identity.digest,
            "shape": model.config.trunk.shape.model_dump(mode="json"),
            "fork_layer": model.config.lanes.fork_layer,
            "dtype": str(weight.dtype),
            "device": weight.device.type,
        }
        if torch.get_float32_matmul_precision() != "highest":  # other products, other last bits
            self._bound["products"] = torch.get_float32_matmul_precision()
        self.hits = self.misses = self.damaged = 0
        self.problem: str | None = None
        """Why nothing more is added, once that is so."""
        _make(directory)
        self.bytes = self._count()
        self._since_count = 0

    @classmethod
    def of(cls, model: ParallelDecoder, config: TrunkCacheConfig) -> "TrunkCache | None":
        """The cache a configuration asks for; None where it names no directory."""
        if config.directory is None:
            return None
        return cls(Path(config.directory), config.max_bytes, model)

    @property
    def open(self) -> bool:
        """Whether another document may be added."""
        return self.problem is None

    def key(self, token_runs: Sequence[Sequence[int]]) -> str:
        """The name of a document: prompt, then its sections in a fixed order."""
        return sha256_json({**self._bound, "tokens": token_runs})

    def load(self, key: str, *, with_targets: bool) -> tuple[Tensor, Tensor | None] | None:
        """What is kept under this name, after its digest was checked; None counts as a miss."""
        path = self._path(key)
        try:
            with safe_open(path, framework="pt") as file:
                names = ["prompt", "targets"] if with_targets else ["prompt"]
                kept = [_checked(file, name) for name in names]
        except FileNotFoundError:
            kept = [None]
        except (OSError, SafetensorError):
            kept = [None]
            self.damaged += 1
        else:
            self.damaged += None in kept
        if None in kept:
            self.misses += 1
            return None
        self.hits += 1
        prompt, *targets = kept
        assert prompt is not None
        return prompt, targets[0] if targets else None

    def store(self, key: str, prompt_TD: Tensor, targets_TD: Tensor) -> None:
        """Keep a document's states, if there is room."""
        if not self.open:
            return
        tensors = {
            name: value.detach().cpu().contiguous()
            for name, value in (("prompt", prompt_TD), ("targets", targets_TD))
        }
        size = sum(value.nbytes for value in tensors.values())
        if self._since_count > self.max_bytes // _RECOUNTS:  # what other processes added
            self.bytes, self._since_count = self._count(), 0
        if self.bytes + size > self.max_bytes:
            self.problem = "it is full"
            return
        path = self._path(key)
        partial = path.with_name(f".{key}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(exist_ok=True)
            save_file(tensors, partial, {name: _digest(value) for name, value in tensors.items()})
            partial.chmod(0o644)
            written = partial.stat().st_size - (path.stat().st_size if path.exists() else 0)
            partial.replace(path)
        except (OSError, SafetensorError) as error:
            partial.unlink(missing_ok=True)
            self.problem = f"it cannot be written ({error})"
            return
        self.bytes += written
        self._since_count += written

    def metrics(self) -> dict[str, float]:
        """Documents found and not found since the last call, and how much is kept."""
        counted: dict[str, float] = {
            "trunk_cache_hits": self.hits,
            "trunk_cache_misses": self.misses,
            "trunk_cache_bytes": self.bytes,
            "trunk_cache_closed": int(not self.open),
        }
        self.hits = self.misses = 0
        return counted

    def describe(self) -> str:
        """One line for whoever watches a run."""
        text = (
            f"trunk cache {self.directory}: {self.bytes / 1e6:,.0f} MB of "
            f"{self.max_bytes / 1e6:,.0f} MB"
        )
        if self.problem is not None:
            text += f"; nothing more is added: {self.problem}"
        if self.damaged:
            text += f"; {self.damaged} damaged files were computed again"
        return text

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.safetensors"

    def _count(self) -> int:
        """Bytes in the directory now; half-written files that nobody writes any more go."""
        total = 0
        for path in self.directory.glob("[0-9a-f][0-9a-f]/*"):
            try:
                state = path.stat()
                if path.suffix == ".partial" and time.time() - state.st_mtime > _ABANDONED:
                    path.unlink()
                else:
                    total += state.st_size
            except FileNotFoundError:  # another process renamed or removed it
                continue
        return total


def _make(directory: Path) -> None:
    """The directory, writable, or a refusal before the first step."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{os.getpid()}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"{directory} cannot hold the trunk's states: {error}.\n"
            "Give training.trunk_cache.directory a place that can be written, or null."
        ) from error


def _checked(file: Any, name: str) -> Tensor | None:
    value: Tensor = file.get_tensor(name)
    return value if (file.metadata() or {}).get(name) == _digest(value) else None


def _digest(value: Tensor) -> str:
    """SHA-256 of shape, type and bytes."""
    total = hashlib.sha256(f"{tuple(value.shape)} {value.dtype}\n".encode())
    total.update(value.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()
