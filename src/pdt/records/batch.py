"""Shards read back as torch batches: ragged documents padded to the longest of the batch.

Integers pad with -1, masks with false, vectors with zero. Lanes keep the order of the record; the
trainer draws `physical_of_semantic` and permutes the K axis itself.

Paper: §4.3, §6.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, UsageError
from pdt.provenance import MANIFEST, check_manifest, read_json_object, sha256_json
from pdt.records.arrays import PAD
from pdt.records.shards import ARRAYS, Shard
from pdt.records.verify import corpus_config, corpus_shards
from pdt.terms import Split

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class RecordBatch:
    """B documents. Every tensor is a field of TrainingRecord with the axis B in front."""

    record_ids: tuple[str, ...]
    dependency_ids: tuple[tuple[str, ...], ...]
    coined_choice_ids: tuple[tuple[str | None, ...], ...]
    prompt_tokens_BS: "Tensor"
    section_tokens_BKT: "Tensor"
    section_lengths_BK: "Tensor"
    presentation_rank_BK: "Tensor"
    fact_embeddings_BFE: "Tensor"
    negative_embeddings_BFE: "Tensor"
    plan_targets_BKNP: "Tensor"
    node_valid_BKN: "Tensor"
    fact_start_BF: "Tensor"
    fact_stop_BF: "Tensor"
    owner_lane_BF: "Tensor"
    owner_node_BF: "Tensor"
    lane_role_BKF: "Tensor"
    permitted_BKF: "Tensor"
    fact_begin_BKT: "Tensor"
    active_node_BKU: "Tensor"
    role_BKUF: "Tensor"
    dependency_owner_BR: "Tensor"
    dependency_owner_block_BR: "Tensor"
    dependency_receiver_BR: "Tensor"
    dependency_entropy_bits_BR: "Tensor"
    dependency_token_BKT: "Tensor"
    edge_dependency_BJ: "Tensor"
    edge_token_BJ: "Tensor"
    edge_coined_BJ: "Tensor"

    @property
    def prompt_valid_BS(self) -> "Tensor":
        return self.prompt_tokens_BS >= 0

    @property
    def token_valid_BKT(self) -> "Tensor":
        return self.section_tokens_BKT >= 0

    @property
    def edge_valid_BJ(self) -> "Tensor":
        return self.edge_dependency_BJ >= 0

    @property
    def lane_at_position_BK(self) -> "Tensor":
        """π of Eq. 8: which lane stands first, second, third."""
        return self.presentation_rank_BK.argsort(dim=1)

    def to(self, device: "torch.device") -> "RecordBatch":
        """The same documents on a device."""
        tensors = {
            field.name: value.to(device)
            for field in fields(self)
            if not isinstance(value := getattr(self, field.name), tuple)
        }
        return replace(self, **tensors)


class RecordShards:
    """A compiled corpus, whole and checked, as a sequence of records."""

    def __init__(self, directory: Path, *, split: Split | None = None) -> None:
        names = corpus_shards(directory)
        check_manifest(directory, names)
        self.directory = directory
        self.config: PdtConfig = corpus_config(directory)
        self.shards = [Shard(directory / name) for name in names]
        self.split = split

    def of_split(self, split: Split) -> "RecordShards":
        """The same corpus, already checked, read for another split."""
        other = copy(self)
        other.split = split
        return other

    def __len__(self) -> int:
        """Records of the split."""
        return sum(self._count(shard) for shard in self.shards)

    @property
    def digest(self) -> str:
        """Of every shard's own digest: the identity of the corpus, wherever it lies."""
        files = read_json_object(self.directory / MANIFEST)["files"]
        return sha256_json([files[shard.path.name]["sha256"] for shard in self.shards])

    def require_tokenizer(self, sha256: str) -> None:
        """Refuse a student that would read these tokens as other text."""
        for shard in self.shards:
            bound = shard.binding["tokenizer"]["sha256"]
            if bound != sha256:
                raise BindingMismatch(
                    f"{shard.path} was compiled with another tokenizer.",
                    [("tokenizer sha256", bound, sha256)],
                    "Compile the documents again with the student's tokenizer.",
                    sides=("shard", "student"),
                )

    def require_vocabulary(self, vocabulary: int) -> None:
        """Refuse a trunk that has no embedding for some token of these records."""
        arrays = ("prompt_tokens_S", "section_tokens_KT")
        most = max(shard.largest(name) for shard in self.shards for name in arrays)
        if most >= vocabulary:
            raise BindingMismatch(
                f"{self.directory} holds tokens that the trunk does not know.",
                [("token id", most, f"0 to {vocabulary - 1}")],
                "Compile the documents again with the trunk's own tokenizer.",
                sides=("records", "trunk.shape.vocabulary"),
            )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each record of the split as arrays, in stored order."""
        for shard in self.shards:
            if self._count(shard):
                yield from self._rows(shard)

    def batches(
        self, size: int, *, seed: int | None = None, skip: int = 0, alike: int = 1
    ) -> Iterator[RecordBatch]:
        """Batches of `size` documents, the last one perhaps smaller.

        With a seed, shards and the records inside each shard are shuffled; one shard is in memory.
        The first `skip` documents of that order are left out, whole shards of them unread.
        With `alike`, so many batches at a time are dealt by length and come in a drawn order: they
        hold the same documents and less padding.
        """
        if size < 1:
            raise UsageError(f"A batch of {size} documents holds nothing; give 1 or more.")
        window = size * alike
        inside = skip % window if alike > 1 else 0
        first = skip - inside
        rows = self._shuffled(seed, first) if seed is not None else islice(self.rows(), first, None)
        for number, some in enumerate(_runs(rows, window), first // window):
            ordered = some if alike == 1 else _by_length(some, size, draw=(seed or 0, number))
            for batch in _runs(islice(ordered, inside, None), size):
                yield collate(batch)
            inside = 0

    def _shuffled(self, seed: int, skip: int) -> Iterator[dict[str, Any]]:
        draw = np.random.default_rng(seed)
        for index in draw.permutation(len(self.shards)):
            shard = self.shards[index]
            places = draw.permutation(self._count(shard))  # drawn even for what is left out
            if skip < len(places):
                rows = list(self._rows(shard))
                yield from (rows[place] for place in places[skip:])
            skip = max(0, skip - len(places))

    def _rows(self, shard: Shard) -> Iterator[dict[str, Any]]:
        for row in shard.rows(with_document=False):
            if self.split is None or row["split"] == self.split:
                yield row

    def _count(self, shard: Shard) -> int:
        return len(shard) if self.split is None else shard.splits().count(self.split)


def _runs(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """So many at a time, the last ones perhaps fewer."""
    left = iter(rows)
    while run := list(islice(left, size)):
        yield run


def _by_length(
    rows: Sequence[dict[str, Any]], size: int, draw: tuple[int, int]
) -> list[dict[str, Any]]:
    """The same rows: batches of documents about as long, in a drawn order, a partial one last."""

    def tokens(row: dict[str, Any]) -> int:
        return row["prompt_tokens_S"].size + row["section_tokens_KT"].size

    together = list(_runs(sorted(rows, key=tokens), size))
    whole = len(rows) // size
    order = np.random.default_rng(draw).permutation(whole)
    places = [*order, *range(whole, len(together))]
    return [row for place in places for row in together[place]]


def collate(rows: Sequence[dict[str, Any]]) -> RecordBatch:
    """Rows padded to the longest of each axis, and stacked."""
    import torch

    tensors: dict[str, Any] = {}
    for name, axes in ARRAYS.items():
        stem, _, letters = name.rpartition("_")
        arrays = [row[name] for row in rows]
        shape = [max(array.shape[axis] for array in arrays) for axis in range(len(axes.letters))]
        dtype = np.dtype("int64") if axes.dtype.startswith("int") else np.dtype(axes.dtype)
        filler = PAD if dtype.kind == "i" else 0
        stacked = np.full((len(rows), *shape), filler, dtype=dtype)
        for target, array in zip(stacked, arrays, strict=True):
            target[tuple(slice(size) for size in array.shape)] = array
        tensors[f"{stem}_B{letters}"] = torch.from_numpy(stacked)
    tensors["record_ids"] = tuple(row["record_id"] for row in rows)
    for name in ("dependency_ids", "coined_choice_ids"):
        tensors[name] = tuple(tuple(row[name]) for row in rows)
    assert tensors.keys() == {field.name for field in fields(RecordBatch)}
    return RecordBatch(**tensors)
