"""The finished batches of an evaluation that has not ended, so that a killed one goes on.

    .OUT.begun/begun.json     what is being evaluated, by digest
    .OUT.begun/batch-0003/    the raw files of one batch, with their manifest

The directory stands beside --out and goes when --out is there.
"""

import shutil
from pathlib import Path
from typing import Any

from pdt.errors import UsageError
from pdt.evaluation.results import Raw, read_raw, write_raw
from pdt.provenance import (
    check_manifest,
    new_directory,
    read_json_object,
    write_json,
    write_manifest,
)

BEGUN = "begun.json"


class Parts:
    """Batches on disk; a batch that is there is read instead of made."""

    def __init__(self, out: Path, what: dict[str, Any]) -> None:
        self.directory = out.with_name(f".{out.name}.begun")
        file = self.directory / BEGUN
        if file.is_file() and read_json_object(file) != what:
            raise UsageError(
                f"{self.directory} holds the beginning of another evaluation: other weights, "
                "records, settings or code.\nChoose another --out, or remove that directory."
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        write_json(file, what)

    def __contains__(self, name: str) -> bool:
        return (self.directory / name).is_dir()

    def read(self, name: str) -> Raw:
        check_manifest(self.directory / name, ())
        return read_raw(self.directory / name)

    def write(self, name: str, raw: Raw) -> None:
        with new_directory(self.directory / name) as work:
            write_raw(work, raw)
            write_manifest(work, made_by="pdt eval run, a part", config=None)

    def remove(self) -> None:
        shutil.rmtree(self.directory)
