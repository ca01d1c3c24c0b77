"""Digests, atomic writes, and the manifest that every output directory carries.

A reader sees the old file or the whole new one, never a part: write beside, flush, rename.
"""

import errno
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from pdt.errors import CorruptFile, UsageError
from pdt.lock import LOCK
from pdt.parse import NotParsed, parse_json

MANIFEST = "manifest.json"


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """Digest of a JSON value in one spelling: sorted keys, no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def named(target: Path, partial: Path) -> Iterator[None]:
    """A file system's error about what is written for `target` names `target`, as the user does."""
    try:
        yield
    except OSError as error:
        file = error.filename
        ours = file is None or Path(file).absolute().is_relative_to(partial.absolute())
        if error.errno is None or not ours:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a path beside `target`; it becomes `target` in one rename, or is removed on failure."""
    with named(target, target.parent):
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".partial"
        )
    os.close(handle)
    partial = Path(name)
    try:
        with named(target, partial):
            yield partial
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            partial.chmod(0o644)
            partial.replace(target)
            _sync_directory(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_json(target: Path, value: Any) -> None:
    with atomic_path(target) as partial:
        partial.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_existing(target: Path, *, else_: str = "remove it") -> None:
    """An output directory is new or empty; nothing is ever written over."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists and is not empty.\nChoose another --out, or {else_}.")


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Yield a fresh directory that becomes `target` only when the block ends well."""
    refuse_existing(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.partial-") as name:
        work = Path(name) / "out"
        work.mkdir()
        with named(target, Path(name)):
            yield work
        try:
            if target.exists():
                target.rmdir()
            work.replace(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            kept = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}-"))
            work.replace(kept)
            raise UsageError(
                f"Another process has made {target} meanwhile; nothing is written over.\n"
                f"What was made here is in {kept}."
            ) from error
    _sync_directory(target.parent)


def write_manifest(directory: Path, *, made_by: str, config: Any, inputs: Any = None) -> None:
    """Name every file of `directory` with its size and digest, and what it was made by and from."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in sorted(directory.iterdir())
        if path.is_file() and path.name not in (MANIFEST, LOCK)
    }
    write_json(
        directory / MANIFEST,
        {
            "made_by": made_by,
            "pdt": metadata.version("pdt"),
            "code_revision": code_revision(),
            "inputs": inputs or {},
            "config": config,
            "files": files,
        },
    )


def check_manifest(directory: Path, required: Iterable[str]) -> dict[str, Any]:
    """Return the manifest after checking that each file it names is there, whole and unchanged."""
    manifest = read_json_object(directory / MANIFEST)
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise CorruptFile(
            f"{directory / MANIFEST} names no files.\nTake the directory again from its source."
        )
    for name in required:
        if name not in files:
            raise CorruptFile(
                f"{directory / MANIFEST} does not name {name}.\nTake the directory again."
            )
    for name, expected in files.items():
        path = directory / name
        if Path(name).name != name or not os.path.isfile(path):  # Path's raises on long names
            raise CorruptFile(
                f"{path} is missing, and the manifest names it.\nTake the directory again."
            )
        if not isinstance(expected, dict) or not {"bytes", "sha256"} <= expected.keys():
            raise CorruptFile(
                f"{directory / MANIFEST} does not say the bytes and sha256 of {name}.\n"
                "Take the directory again from its source."
            )
        size = path.stat().st_size
        if size != expected["bytes"]:
            raise CorruptFile(
                f"{path} has {size} bytes, the manifest says {expected['bytes']}.\n"
                "The file is truncated or was changed. Take it again from its source."
            )
        if sha256_file(path) != expected["sha256"]:
            raise CorruptFile(
                f"{path} does not have the digest its manifest names.\n"
                "The file was changed after it was written. Take it again from its source."
            )
    return manifest


def read_utf8(path: Path, *, remedy: str) -> str:
    """The text of a file, or one clear refusal."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFile(f"{path} is not UTF-8: {error}.\n{remedy}") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON object from disk, or one clear refusal."""
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise CorruptFile(f"{path} is missing.\nIs {path.parent} the right directory?") from error
    except (OSError, NotParsed) as error:
        raise CorruptFile(
            f"{path} cannot be read as JSON: {error}.\nTake it again from its source."
        ) from error
    if not isinstance(value, dict):
        raise CorruptFile(f"{path} holds a {type(value).__name__}, expected an object.")
    return value


def code_digest() -> str:
    """Of every Python and C file of the package: the code that runs, committed or not."""
    root = Path(__file__).parent
    files = sorted([*root.rglob("*.py"), *root.rglob("*.c")])
    return sha256_json({str(path.relative_to(root)): sha256_file(path) for path in files})


def code_revision() -> str:
    """The git revision of the running code, `+changes` when the tree is not clean, or `unknown`."""
    here = Path(__file__).parent
    try:
        revision = _git(here, "rev-parse", "HEAD")
        return revision + (
            "+changes" if _git(here, "status", "--porcelain", "--untracked-files=no") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(where: Path, *arguments: str) -> str:
    run = subprocess.run(
        ["git", "-C", str(where), *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
