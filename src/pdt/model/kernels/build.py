"""Compile `rows.c` once for this machine and keep it in the user's cache.

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

SOURCE = Path(__file__).with_name("rows.c")
FLAGS = ("-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")


def cache_directory() -> Path:
    """`$PDT_CACHE`, or the user's cache directory."""
    root = os.environ.get("PDT_CACHE") or os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/pdt"
    return Path(root).expanduser()


@functools.cache
def rows_library() -> ctypes.CDLL | None:
    """The compiled kernel, or None where it cannot be had."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if os.environ.get("PDT_KERNELS") == "off" or platform.system() != "Linux" or not compiler:
        return None
    try:
        library = ctypes.CDLL(str(_compiled(compiler)))
    except (OSError, subprocess.CalledProcessError):
        return None
    pointers, sizes = [ctypes.c_void_p] * 3, [ctypes.c_long] * 4
    library.pdt_rows_linear.argtypes = [*pointers, *sizes, ctypes.c_int]
    library.pdt_rows_linear.restype = None
    return library


def _compiled(compiler: str) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    cpu = "".join(sorted({line for line in _cpu_flags() if line.startswith(("flags", "Features"))}))
    key = hashlib.sha256(b"\0".join([SOURCE.read_bytes(), " ".join(FLAGS).encode(), version]))
    key.update(platform.machine().encode() + cpu.encode())
    target = cache_directory() / "kernels" / f"rows-{key.hexdigest()[:16]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target) as partial:
            command = [compiler, *FLAGS, str(SOURCE), "-o", str(partial)]
            subprocess.run(command, capture_output=True, check=True)
    return target


def _cpu_flags() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
