"""Verify a final directory: verdict, audit, and every number that follows from both.

Paper: §7.2, Table 3.
"""

from pathlib import Path

from pdt.audit.adjudicated.write import AUDIT, FILES, MADE_BY, VERDICT, Final, finish, renderings
from pdt.errors import ContractBroken
from pdt.provenance import MANIFEST, check_manifest


def verify_final(directory: Path) -> Final:
    """The final rates, if they are what the votes give."""
    manifest = check_manifest(directory, FILES)
    strangers = {path.name for path in directory.iterdir()} - {*FILES, VERDICT, AUDIT, MANIFEST}
    if strangers:
        raise _changed(directory / min(strangers), "is no file of a final directory")
    final = finish(directory / VERDICT, directory / AUDIT)
    digests = {VERDICT: final.adjudicated.verdict, AUDIT: final.adjudicated.audit}
    if manifest.get("made_by") != MADE_BY or manifest.get("inputs") != digests:
        raise _changed(directory / MANIFEST, "names another verdict or audit than lies here")
    for name, text in renderings(final).items():
        if (directory / name).read_bytes() != text.encode():
            raise _changed(directory / name, "is not what verdict and votes give")
    return final


def _changed(path: Path, what: str) -> ContractBroken:
    return ContractBroken(
        f"{path}: {what}.",
        "The directory was changed after it was written. Make it again with "
        "`pdt eval report --audit`.",
    )
