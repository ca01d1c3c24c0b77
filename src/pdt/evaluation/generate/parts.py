"""The finished batches of an evaluation that has not ended, so that a killed one goes on.

    .OUT.begun/begun.json     what is being evaluated: settings, digests of inputs and of the code
    .OUT.begun/batch-0003/    the raw files of one batch, with their manifest

The directory stands beside --out and is removed once --out is written.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pdt.binding import refuse_other
from pdt.errors import CorruptFile
from pdt.evaluation.lines.raw import Raw, read_raw, write_raw
from pdt.lock import hold_run
from pdt.provenance import (
    MANIFEST,
    check_manifest,
    new_directory,
    read_json_object,
    write_json,
    write_manifest,
)

BEGUN = "begun.json"


class Parts:
    """Batches on disk; a batch that is there and whole is read instead of measured."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, name: str) -> Raw | None:
        """None where it has to be measured: a damaged one is as good as absent."""
        place = self.directory / name
        if not place.is_dir():
            return None
        try:
            check_manifest(place, ())
            return read_raw(place)
        except CorruptFile:
            shutil.rmtree(place)
            return None

    def write(self, name: str, raw: Raw) -> None:
        with new_directory(self.directory / name) as work:
            write_raw(work, raw)
            write_manifest(work, made_by="pdt eval run, a part", config=None)


@contextmanager
def kept_parts(out: Path, what: dict[str, Any]) -> Iterator[Parts]:
    """The parts of the evaluation that will be `out`; gone when the block ends well."""
    directory = out.with_name(f".{out.name}.begun")
    directory.mkdir(parents=True, exist_ok=True)
    with hold_run(directory, "evaluating", "Choose another --out, or wait for it to end."):
        file = directory / BEGUN
        if any(directory.glob(f"*/{MANIFEST}")):
            refuse_other(
                read_json_object(file),
                what,
                f"{directory} holds the beginning of another evaluation: other weights, records, "
                "settings or code.",
                "Choose another --out, or remove that directory.",
            )
        else:
            write_json(file, what)
        yield Parts(directory)
        shutil.rmtree(directory)
