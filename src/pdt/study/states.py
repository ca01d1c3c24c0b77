"""Read a study's documents through the frozen trunk once, before any run wants their states.

The two runs of a seed take the documents in one order: each would compute what the other is about
to keep. Shared out beforehand, a document is read once.

Paper: §3.1 (the trunk never changes).
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pdt.model.pdt import ParallelDecoder
from pdt.provenance import write_json
from pdt.records.batch import RecordShards, collate
from pdt.training.trunk_cache import TrunkCache
from pdt.training.trunk_states import TrunkReader


def read_mark(cache: Path, part: int, parts: int) -> Path:
    """There when the part is read, or the cache is full."""
    return cache / f"part-{part}-of-{parts}.json"


def keep_states(
    model: ParallelDecoder, shards: RecordShards, cache: TrunkCache, *, part: int, parts: int
) -> Iterator[int]:
    """Keep every `parts`-th document's states, from the `part`-th on; yields how many are read."""
    reader = TrunkReader(model, cache)
    count = 0
    for count, row in enumerate(islice(shards.rows(), part - 1, None, parts), 1):
        reader.read(collate([row]), with_targets=True)
        yield count
        if not cache.open:  # runs compute the rest, each for itself
            break
    file = read_mark(cache.directory, part, parts)
    write_json(file, {"records": shards.digest, "documents": count})
