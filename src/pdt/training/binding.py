"""A run's own manifest.json: the configuration, the code, and the digests of what it is made from.

Written once, before the first step. A run that goes on must be given the same corpus.

Paper: §6.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pdt.binding import refuse_other
from pdt.errors import CorruptFile
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import MANIFEST, read_json_object, write_manifest
from pdt.records.batch import RecordShards


def bind_run(
    run: Path,
    model: ParallelDecoder,
    shards: RecordShards,
    inputs: Mapping[str, Any] | None = None,
    *,
    anew: bool = True,
) -> None:
    """Write the manifest of a new run, or refuse another corpus than the run's own.

    `anew` is a run without a checkpoint: begun already, it must begin again as it did.
    """
    records = {
        "directory": str(shards.directory.resolve()),
        "digest": shards.digest,
        "documents": len(shards),
    }
    if (run / MANIFEST).exists():
        bound = _records_of(run)
        refuse_other(
            bound,
            records,
            f"{run} was begun with other records, those of {bound.get('directory')}.",
            "A run has one corpus: its place in the documents means nothing in another one.\n"
            "Give that corpus, or start a new run directory.",
            sides=("run", "given"),
            free=("directory",),
        )
        if anew:
            manifest = read_json_object(run / MANIFEST)
            refuse_other(
                {"config": manifest.get("config"), **_start_of(manifest)},
                {"config": model.config.model_dump(mode="json"), **(inputs or {})},
                f"{run} has no checkpoint yet, and was begun another way.",
                "Begin it again as it was begun, or choose another --out.",
                sides=("run", "given"),
                free=("config.training.watch.",),
            )
        return
    assert model.trunk_identity is not None, "a model that is trained has weights"
    write_manifest(
        run,
        made_by="pdt train run",
        config=model.config.model_dump(mode="json"),
        inputs={
            "records": records,
            "trunk": asdict(model.trunk_identity),
            "tokenizer": None if model.tokenizer is None else model.tokenizer.sha256,
            **(inputs or {}),
        },
    )


def _start_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the run's model came from."""
    inputs = manifest.get("inputs") or {}
    return {
        key: inputs[key] for key in ("model", "seed", "screen", "pilot", "scale") if key in inputs
    }


def _records_of(run: Path) -> dict[str, Any]:
    inputs = read_json_object(run / MANIFEST).get("inputs")
    if not isinstance(inputs, dict) or not isinstance(inputs.get("records"), dict):
        raise CorruptFile(
            f"{run / MANIFEST} does not name the records of this run.\n"
            "It was changed after it was written. Start a new run directory."
        )
    return inputs["records"]
