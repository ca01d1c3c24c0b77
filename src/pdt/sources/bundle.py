"""One exact revision as an immutable directory of raw bytes, addressed by its content.

`ROOT/<bundle_id>/bundle.json` names every raw file with its digest; the directory's own name is the
digest of that metadata, so neither a file nor the metadata can change unseen. Wikipedia and
Chronicle sources have this one form.

Paper: §4.1.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import CorruptFile
from pdt.provenance import new_directory, sha256_file, sha256_json, write_json
from pdt.sources.article import Citation
from pdt.terms import SourceOrigin

METADATA = "bundle.json"
RAW_FILES = {
    "wikitext": "wikitext.txt",
    "html": "parsoid.html",
    "assessments": "assessments.json",
    "citations": "citations.json",
}
"""The raw files that every bundle holds, by role."""


class RawFile(Contract):
    """One raw file of a bundle, exactly as it was received."""

    name: Id
    """File name inside the bundle; never a path."""
    bytes: int = Field(ge=0)
    """Its size."""
    sha256: Sha256
    """Its digest."""


class Licence(Contract):
    """What the source may be used for."""

    name: Line
    """For example `CC BY-SA 4.0`."""
    url: Line
    """Where the licence can be read."""
    attribution: Line
    """Who must be named, and how."""


class SourceBundle(Contract):
    """The identity of one revision and the digests of its raw files."""

    schema_version: Literal["pdt.bundle/1"] = "pdt.bundle/1"
    """The version of this contract."""
    origin: SourceOrigin
    """Wikimedia, Chronicle, or written by hand."""
    project: Line
    """For example `en.wikipedia.org`, or the generator's name and version."""
    page_id: int = Field(ge=0)
    """The page, as its project numbers it."""
    revision_id: int = Field(ge=0)
    """The exact revision of that page."""
    title: Line
    """The page's title at that revision."""
    revised_at: AwareDatetime
    """When the revision was made."""
    acquired_at: AwareDatetime
    """When its bytes were taken."""
    licence: Licence
    """The licence of the revision."""
    files: dict[Id, RawFile]
    """Raw files by role: wikitext, html, assessments, citations, and any others."""

    @property
    def bundle_id(self) -> str:
        """The content address: the digest of everything above."""
        return sha256_json(self.model_dump(mode="json"))


def describe_bundle(
    identity: Mapping[str, object],
    raw: Mapping[str, bytes],
    *,
    names: Mapping[str, str] = RAW_FILES,
) -> SourceBundle:
    """The metadata of `raw` files by role, before anything is written."""
    files = {
        role: RawFile(
            name=names[role], bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
        ).model_dump()
        for role, data in sorted(raw.items())
    }
    return parse_contract(
        SourceBundle, {**identity, "files": files}, where=f"bundle {identity.get('title')}"
    )


def write_bundle(root: Path, bundle: SourceBundle, raw: Mapping[str, bytes]) -> Path:
    """Write the bundle under `root`; one that is already there is checked and left as it is."""
    target = root / bundle.bundle_id
    if target.exists():
        read_bundle(target)
        return target
    with new_directory(target) as work:
        for role, data in raw.items():
            (work / bundle.files[role].name).write_bytes(data)
        write_json(work / METADATA, bundle.model_dump(mode="json"))
    return target


def read_bundle(directory: Path) -> SourceBundle:
    """The bundle at `directory`, after every digest was checked."""
    path = directory / METADATA
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorruptFile(f"{path} cannot be read: {error}.\nTake the bundle again.") from error
    bundle = parse_contract(SourceBundle, data, where=str(path))
    if bundle.bundle_id != directory.name:
        raise CorruptFile(
            f"{path} has the address {bundle.bundle_id[:16]}…, but its directory is named "
            f"{directory.name[:16]}….\nThe metadata was changed. Take the bundle again."
        )
    for role in RAW_FILES:
        if role not in bundle.files:
            raise CorruptFile(f"{path} names no {role} file.\nTake the bundle again.")
    for role, file in bundle.files.items():
        raw = directory / file.name
        if not raw.is_file() or raw.stat().st_size != file.bytes or sha256_file(raw) != file.sha256:
            raise CorruptFile(
                f"{raw} ({role}) is missing or not the bytes its bundle names.\n"
                "A bundle is immutable. Take it again from its source."
            )
    return bundle


_CITATIONS = TypeAdapter(tuple[Citation, ...])


def read_citations(directory: Path, bundle: SourceBundle) -> tuple[Citation, ...]:
    """The reference records of a bundle: its citations file is a JSON list of `Citation`."""
    path = directory / bundle.files["citations"].name
    try:
        return _CITATIONS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptFile(
            f"{path} is not a list of citations ({error.error_count()} mistakes).\n"
            "Take the bundle again."
        ) from error
