"""Stored tensors have the sizes that a configuration asks for: seen before memory is taken.

A configuration is a few numbers that a text editor can change; a model of them may not fit into any
memory. What lies on disk is read off the headers of its files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.overrides import TorchFunctionMode

from pdt.config import PdtConfig
from pdt.errors import CorruptFile
from pdt.model.packing import of_floats
from pdt.model.pdt import ParallelDecoder

Shapes = dict[str, tuple[int, ...]]
_FLOATS = ("F32", "F16", "BF16")
_SHOWN = 8
_DRAWS = ("normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_", "trunc_normal_")


def stored_shapes(path: Path, prefix: str = "") -> Shapes:
    """Name and shape of every tensor of a safetensors file; floats, or blocks of them."""
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {name: part.get_dtype() for name, part in slices.items()}
            shapes = {prefix + name: tuple(part.get_shape()) for name, part in slices.items()}
    except (OSError, SafetensorError) as error:
        raise CorruptFile(
            f"{path} is not a whole safetensors file: {error}.\nTake it again."
        ) from error
    for name, kind in kinds.items():
        if kind not in (("U8",) if name.endswith(".blocks") else _FLOATS):
            raise CorruptFile(f"{path}: {name} is stored as {kind}, expected a float.")
    return shapes


def check_sizes(
    config: PdtConfig, stored: Mapping[str, tuple[int, ...]], where: Path, *, with_trunk: bool
) -> None:
    """Refuse tensors that are missing, of another size, or nobody's.

    Without the trunk, its own file has been held against the configuration already.
    """
    counts = {"planner.layers": config.planner.layers, "upper layers": config.upper_layers}
    if with_trunk:
        counts["trunk.shape.layers"] = config.trunk.shape.layers
    problems = [f"  {key}: {count:,}" for key, count in counts.items() if count > len(stored)]
    if problems:  # a layer has many tensors
        raise _refusal(where, [*problems, f"  tensors stored: {len(stored)}"])
    expected = _expected(config, where)
    stored = of_floats(stored, expected)
    if not with_trunk:
        expected = {n: shape for n, shape in expected.items() if not n.startswith("trunk.")}
    problems = [
        f"  {name}: missing"
        if name not in stored
        else f"  {name}: stored {stored[name]}, the configuration says {shape}"
        for name, shape in expected.items()
        if stored.get(name) != shape
    ]
    problems += [f"  {name}: not a tensor of this model" for name in stored if name not in expected]
    if problems:
        raise _refusal(where, problems)


def _expected(config: PdtConfig, where: Path) -> Shapes:
    """The tensors of a model of this configuration, named without any memory for them."""
    try:
        with torch.device("meta"), NoDraws():
            model = ParallelDecoder(config)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise _refusal(where, [f"  {str(error).splitlines()[0]}"]) from error
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


class NoDraws(TorchFunctionMode):
    """Nothing is drawn that a saved value replaces; without memory it would load a compiler too."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        if func is torch.arange:
            kwargs = {"device": "cpu", **(kwargs or {})}
        return func(*args, **(kwargs or {}))


def _refusal(where: Path, problems: list[str]) -> CorruptFile:
    more = [f"  … and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    first = f"{where} does not hold the tensors its configuration describes."
    last = "Its configuration or its weights were changed. Take the directory again."
    return CorruptFile("\n".join([first, *problems[:_SHOWN], *more, last]))
