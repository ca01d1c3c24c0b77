"""What tests share: a tiny model with its gates open, and where real weights may lie."""

import os
from pathlib import Path

# Read when torch loads its OpenMP, so it stands before that import. A waiting thread spins, and on
# shared cores it spins away the time of the thread it waits for: three files of tests/spec took
# 465 s on a busy machine, and 11 s with a short spin. The `pdt` command sets the same.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several test processes: one core each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from pdt.config import PdtConfig, load_config
from pdt.model.build import random_model
from pdt.model.pdt import ParallelDecoder
from tests.support.weights import SMOLLM2, skip_without_weights

ROOT = Path(__file__).parents[1]

# Some virtual machines name AMX among their CPU's flags and trap its instructions: oneDNN's BF16
# products end there with SIGILL (docs/log.md, 2026-11-18). Read at the first product; inherited.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# No test depends on what was measured on a machine.
os.environ["PDT_MATMUL"] = "default"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "smollm2_gguf" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.weights(SMOLLM2))
    # Files that hold a slow test go first, whole: tests of a file share fixtures, and the processes
    # of `make test` take a file each.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    skip_without_weights(item)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1729)


def open_model(config: PdtConfig | None = None, *, seed: int = 1) -> ParallelDecoder:
    """A random model in which every mechanism acts: lanes differ, reads are open."""
    model = random_model(config or load_config("tiny"), seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, parameter in model.named_parameters():
        if name.startswith("trunk."):
            continue
        if name.endswith("residual_gate"):
            parameter.data.fill_(2.0)
        else:
            strength = 0.6 if "plan_kv" in name or "snc" in name else 0.3
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.data.add_(noise * strength * parameter.shape[-1:].numel() ** -0.5)
    return model.eval()


@pytest.fixture
def model() -> ParallelDecoder:
    return open_model()


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """Real SmolLM2 weights (`make weights`); a test that takes them is skipped without."""
    return SMOLLM2
