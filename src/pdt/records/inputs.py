"""Taught documents from disk, one line at a time, each with the place a message can name."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdt.contract import parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.provenance import sha256_file
from pdt.teacher.document import TaughtDocument


@dataclass(frozen=True)
class DocumentLine:
    """The bytes of one document and where they stand."""

    file: str
    line: int
    data: bytes

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    def parse(self) -> TaughtDocument:
        """The document, or a refusal that names file, line and field."""
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ContractBroken(
                f"{self.where} is not UTF-8: byte {error.start} of the line is "
                f"0x{self.data[error.start]:02x}.",
                "Write the file again as UTF-8; `iconv -f LATIN1 -t UTF-8` converts Latin-1.",
            ) from error
        return parse_contract(TaughtDocument, text, where=self.where)


def document_files(inputs: Sequence[Path]) -> list[Path]:
    """Every .jsonl (one document a line) and .json (one document) file, folders in name order."""
    files: list[Path] = []
    for path in inputs:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.suffix in (".jsonl", ".json"))
            if not found:
                raise UsageError(f"{path} holds no .jsonl or .json file.\nGive another directory.")
            files += [p for p in found if p.name != "manifest.json"]
        elif path.is_file():
            files.append(path)
        else:
            raise UsageError(f"{path} does not exist.\nGive a .jsonl file of taught documents.")
    for file in files:
        if file.stat().st_size == 0:
            raise ContractBroken(f"{file} is empty.", "Write its documents again, or leave it out.")
    return files


def read_lines(files: Sequence[Path]) -> Iterator[DocumentLine]:
    """Every document of the files, in order, without holding more than one."""
    for file in files:
        if file.suffix == ".json":
            yield DocumentLine(str(file), 1, file.read_bytes())
            continue
        with file.open("rb") as stream:
            for number, data in enumerate(stream, start=1):
                if data.strip():
                    yield DocumentLine(str(file), number, data.rstrip(b"\r\n"))


def read_documents(inputs: Sequence[Path]) -> Iterator[tuple[DocumentLine, TaughtDocument]]:
    """Every document, parsed; a second document with an id that was seen is refused."""
    seen: dict[str, str] = {}
    for line in read_lines(document_files(inputs)):
        document = line.parse()
        first = seen.setdefault(document.record_id, line.where)
        if first != line.where:
            raise duplicate_id(document.record_id, first, line.where)
        yield line, document


def duplicate_id(record_id: str, first: str, second: str) -> ContractBroken:
    return ContractBroken(
        f"The record id {record_id!r} stands twice: {first} and {second}.",
        "An id names one record. Rename or remove one of them.",
    )


def input_digests(files: Sequence[Path]) -> dict[str, str]:
    """The digest of every input file, by its path from the directory that holds them all."""
    paths = [file.absolute() for file in files]
    root = os.path.commonpath([path.parent for path in paths])
    return {path.relative_to(root).as_posix(): sha256_file(path) for path in paths}


def lines_digest(lines: Sequence[DocumentLine]) -> str:
    """One digest over the documents of a shard."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(hashlib.sha256(line.data).digest())
    return digest.hexdigest()
