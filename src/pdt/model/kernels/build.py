"""Compile `decode.c` once for this machine and keep it in the user's cache.

No compiler, another platform, or `PDT_KERNELS=off`: the plain torch product is used instead, which
is slower and equal. The library is named by the digest of source, flags, compiler and CPU.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from pdt.provenance import atomic_path

SOURCE = Path(__file__).with_name("decode.c")
PARTS = (SOURCE, *sorted(SOURCE.parent.glob("*.h")))
"""One idea each; `decode.c` includes the others, so that they are compiled as one."""
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")


def cache_directory() -> Path:
    """`$PDT_CACHE`, or the user's cache directory."""
    root = os.environ.get("PDT_CACHE") or os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/pdt"
    return Path(root).expanduser()


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernel, or None where it cannot be had."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if os.environ.get("PDT_KERNELS") == "off" or platform.system() != "Linux" or not compiler:
        return None
    try:
        compiled = ctypes.CDLL(str(_compiled(compiler)))
    except (OSError, subprocess.CalledProcessError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_long
    compiled.pdt_rows_linear.argtypes = [*[pointer] * 3, *[size] * 4, ctypes.c_int]
    compiled.pdt_rows_linear.restype = None
    kind = ctypes.c_int
    compiled.pdt_blocks_linear.argtypes = [
        kind, *[pointer] * 3, *[size] * 4, pointer, ctypes.c_int,
    ]  # fmt: skip
    compiled.pdt_blocks_linear.restype = None
    compiled.pdt_blocks_expand.argtypes = [kind, pointer, pointer, size, size]
    compiled.pdt_blocks_expand.restype = None
    compiled.pdt_round.argtypes = [pointer, pointer]
    compiled.pdt_round.restype = None
    compiled.pdt_round_scratch.argtypes = [pointer]
    compiled.pdt_round_scratch.restype = size
    return compiled


def _compiled(compiler: str) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    cpu = "".join(cpu_lines(("flags", "Features")))
    parts = [part.read_bytes() for part in PARTS]
    key = hashlib.sha256(b"\0".join([*parts, " ".join(FLAGS).encode(), version]))
    key.update(platform.machine().encode() + cpu.encode())
    target = cache_directory() / "kernels" / f"decode-{key.hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target) as partial:
            command = [compiler, *FLAGS, str(SOURCE), "-o", str(partial), "-lm"]
            subprocess.run(command, capture_output=True, check=True)
    return target


def cpu_lines(starts: tuple[str, ...]) -> list[str]:
    """The lines of the CPU's description that begin so, each once; none where there is no file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    return sorted({line for line in lines if line.startswith(starts)})
