"""The machine's best way to multiply, measured once and kept with its figures.

    default   torch's own choice, in fp32
    onednn    fp32 through oneDNN, which torch 2.13 takes for the precision "medium": on some CPUs
              the same sums two to three times as fast, on others BF16 products, on others slower
    bf16      BF16 operands: what `training.dtype=bfloat16` multiplies

The fastest way that is exact to fp32 is used; no layer knows which. `PDT_MATMUL=default` or
`onednn` chooses without measuring (docs/decisions/matmul.md).
"""

import functools
import hashlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import torch

from pdt.errors import UsageError
from pdt.model.kernels.build import cache_directory, cpu_lines
from pdt.provenance import atomic_path

MOST_ERROR = 4.0
"""A way is exact to fp32 when its largest error is within this factor of the default's."""
LEAST_GAIN = 1.5
"""The default stays unless another way is faster by this factor: a busy machine must not choose."""
LONGEST_PROBE = 60.0
"""Seconds; BF16 without instructions for it can take minutes."""


class Way(StrEnum):
    """How two matrices are multiplied."""

    DEFAULT = "default"
    ONEDNN = "onednn"
    BF16 = "bf16"


@dataclass(frozen=True)
class ShapeFigures:
    """One shape: the way beside the default. Errors are over the product's largest number."""

    shape: str
    default_gigaflops: float
    default_error: float
    gigaflops: float
    error: float


@dataclass(frozen=True)
class Measured:
    """What one way measured on this machine; without shapes it did not run."""

    way: Way
    shapes: tuple[ShapeFigures, ...] = ()
    problem: str | None = None
    """How it ended, where it was tried and did not run."""

    @property
    def gain(self) -> float:
        """How many times as fast as the default: the geometric mean over the shapes."""
        if not self.shapes:
            return 0.0
        ratios = [math.log(s.gigaflops / s.default_gigaflops) for s in self.shapes]
        return math.exp(sum(ratios) / len(ratios))

    @property
    def exact(self) -> bool:
        return bool(self.shapes) and all(
            s.error <= MOST_ERROR * s.default_error for s in self.shapes
        )

    @property
    def pays(self) -> bool:
        """Whether it takes the default's place where fp32 is asked for."""
        return self.exact and self.gain >= LEAST_GAIN


def use_way(way: Way) -> None:
    """Multiply fp32 matrices this way from now on, in this process."""
    torch.set_float32_matmul_precision("medium" if way is Way.ONEDNN else "highest")


def use_best_way(device: torch.device) -> Way:
    """Take the best way for fp32 products on this device; a GPU keeps torch's own."""
    way = best_way() if device.type == "cpu" else Way.DEFAULT
    use_way(way)
    return way


def best_way() -> Way:
    """What `PDT_MATMUL` says, or what was measured here."""
    asked = asked_way()
    if asked is not None:
        return asked
    return Way.ONEDNN if measured(Way.ONEDNN).pays else Way.DEFAULT


def asked_way() -> Way | None:
    """`PDT_MATMUL`: default, onednn, or auto for what measures best."""
    text = os.environ.get("PDT_MATMUL", "auto")
    ways = {"auto": None, "default": Way.DEFAULT, "onednn": Way.ONEDNN}
    if text not in ways:
        raise UsageError(f"PDT_MATMUL is {text!r}. Say {', '.join(ways)}.")
    return ways[text]


def check_bf16() -> None:
    """Refuse BF16 on a CPU that says it can and then traps; `PDT_MATMUL` says: do not try."""
    if asked_way() is not None:
        return
    problem = measured(Way.BF16).problem
    if problem is not None:
        raise UsageError(
            f"BF16 products do not run on this CPU: {problem}.\n"
            "Set training.dtype=float32, or ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 where a virtual "
            "machine names AMX and traps it."
        )


@functools.cache
def measured(way: Way) -> Measured:
    """The figures kept for this machine; measured now where there are none.

    Where nothing can be kept nothing is measured: the choice must not change from run to run.
    """
    kept = _kept_path(way)
    found = _read(kept, way)
    if found is not None:
        return found
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(kept) as partial:  # first of all: can it be kept?
            found = measure(way)
            partial.write_text(json.dumps({"machine": machine(), **asdict(found)}, indent=2))
    except OSError:
        return Measured(way)
    return found


def measure(way: Way) -> Measured:
    """Run the probe in a child process and read its figures."""
    command = [sys.executable, "-m", "pdt.model.kernels.probe", way.value]
    try:
        run = subprocess.run(command, capture_output=True, timeout=LONGEST_PROBE, check=False)
    except subprocess.TimeoutExpired:
        return Measured(
            way, problem=f"it takes more than {LONGEST_PROBE:.0f} s where others take 1"
        )
    if run.returncode < 0:
        return Measured(way, problem=f"it ends with {signal.Signals(-run.returncode).name}")
    if run.returncode > 0:
        last = run.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return Measured(way, problem="".join(last) or f"it ends with {run.returncode}")
    return Measured(way, tuple(ShapeFigures(**entry) for entry in json.loads(run.stdout)))


def machine() -> dict[str, str]:
    """What a choice is bound to."""
    names = {line.partition(":")[2].strip() for line in cpu_lines(("model name",))}
    flags = "".join(cpu_lines(("cpu family", "model\t", "flags", "Features")))
    return {
        "cpu": ", ".join(sorted(names)) or platform.processor() or platform.machine(),
        "features": hashlib.sha256(flags.encode()).hexdigest()[:16],
        "instructions": os.environ.get("ONEDNN_MAX_CPU_ISA", "all"),
        "torch": str(torch.__version__),
    }


def _kept_path(way: Way) -> Path:
    text = json.dumps(machine(), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cache_directory() / "matmul" / f"{way.value}-{digest}.json"


def _read(kept: Path, way: Way) -> Measured | None:
    try:
        found = json.loads(kept.read_text())
        shapes = tuple(ShapeFigures(**entry) for entry in found["shapes"])
        return Measured(way, shapes, found["problem"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
