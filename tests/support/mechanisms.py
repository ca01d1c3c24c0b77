"""The claims of a test file about the mechanisms of a model, for tests that hold them elsewhere."""

from collections.abc import Callable
from types import ModuleType

from pdt.model.pdt import ParallelDecoder


def mechanisms_of(module: ModuleType) -> list[Callable[[ParallelDecoder], None]]:
    """Its tests that are marked as a mechanism; each takes a model and nothing else."""
    return [
        value
        for value in vars(module).values()
        if any(mark.name == "mechanism" for mark in getattr(value, "pytestmark", ()))
    ]
