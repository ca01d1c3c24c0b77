"""A run's own manifest.json: the configuration, the code, and the digests of what it is made from.

Written once, before the first step. A run that goes on must be given the same corpus.

Paper: §6.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pdt.errors import BindingMismatch, CorruptFile
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import MANIFEST, read_json_object, write_manifest
from pdt.records.batch import RecordShards


def bind_run(
    run: Path, model: ParallelDecoder, shards: RecordShards, inputs: Mapping[str, Any] | None = None
) -> None:
    """Write the manifest of a new run, or refuse another corpus than the run's own."""
    if (run / MANIFEST).exists():
        _check_corpus(run, shards)
        return
    assert model.trunk_identity is not None, "a model that is trained has weights"
    write_manifest(
        run,
        made_by="pdt train run",
        config=model.config.model_dump(mode="json"),
        inputs={
            "records": {
                "directory": str(shards.directory.resolve()),
                "digest": shards.digest,
                "documents": len(shards),
            },
            "trunk": asdict(model.trunk_identity),
            "tokenizer": None if model.tokenizer is None else model.tokenizer.sha256,
            **(inputs or {}),
        },
    )


def _check_corpus(run: Path, shards: RecordShards) -> None:
    try:
        bound = read_json_object(run / MANIFEST)["inputs"]["records"]
        digest, directory, documents = (bound[k] for k in ("digest", "directory", "documents"))
    except (KeyError, TypeError) as error:
        raise CorruptFile(
            f"{run / MANIFEST} does not name the records of this run.\n"
            "It was changed after it was written. Start a new run directory."
        ) from error
    if (digest, documents) != (shards.digest, len(shards)):
        raise BindingMismatch(
            f"{run} was begun with other records.",
            [
                ("directory", directory, shards.directory.resolve()),
                ("documents", documents, len(shards)),
                ("digest", str(digest)[:16], shards.digest[:16]),
            ],
            "A run has one corpus: its place in the documents means nothing in another one.\n"
            "Give that corpus, or start a new run directory.",
            sides=("run", "given"),
        )
