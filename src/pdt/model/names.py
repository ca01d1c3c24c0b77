"""What a model is called: a path is written as one, and a bare name is a model of the package.

`nano` is the trained model that comes with the package, whatever lies in the working directory;
`./nano` is a directory.
"""

import os
import warnings
from pathlib import Path

from pdt.errors import PdtWarning, require_type

BOX = Path(__file__).parents[1] / "weights"
"""Trained models that come with the package."""


def packaged_models() -> list[str]:
    """The names of the models in the package."""
    return sorted(path.name for path in BOX.iterdir() if path.is_dir())


def as_written(text: str) -> Path:
    """A path that stays one: `./nano` would become the bare name `nano`."""
    path = Path(text)
    return path.absolute() if "/" in text and len(path.parts) == 1 else path


def model_directory(named: str | Path) -> Path:
    """Where the model lies: in the package, in the directory named, or in that of a checkpoint."""
    choice = f"a directory or a model of the package: {', '.join(packaged_models())}"
    require_type(named, (str, Path), "The model's name", choice)
    path = as_written(named) if isinstance(named, str) else named
    if str(path) in packaged_models():
        if path.exists():
            warnings.warn(
                f"{path} is the model of that name in the package, not the directory here. "
                f"Write ./{path} for the directory.",
                PdtWarning,
                stacklevel=2,
            )
        return BOX / path
    return path / "model" if os.path.isdir(path / "model") else path
