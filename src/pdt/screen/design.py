"""A screen as data: the axes and their other levels, the seeds, what is judged and how compared.

Designs lie in `designs/`, one a preset; another can be given as a file.

Paper: Appendix A.
"""

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from pdt.contract import Contract, Id, Line
from pdt.errors import UsageError
from pdt.parse import NotParsed, parse_yaml
from pdt.terms import Split

Level = int | float | str | dict[str, Any]
"""A value of the axis's key; a mapping is laid over what stands there."""


class Axis(Contract):
    """One factor: where it stands in the configuration, and its levels beside the baseline's."""

    name: Line
    key: Line | None = None
    """A key of the configuration, or `upper_layers` or `learning_rate`, which move several."""
    levels: tuple[Level, ...] = ()
    preset: Line | None = None
    """Instead of a key: the other level is what this preset changes of the baseline's."""

    @model_validator(mode="after")
    def _one_way(self) -> "Axis":
        if (self.preset is None) == (self.key is None) or bool(self.key) != bool(self.levels):
            raise ValueError(f"the axis {self.name!r} needs a key with levels, or a preset")
        return self


class Interaction(Contract):
    """Levels of several axes at once; only in a study that is registered after a report."""

    name: Line
    levels: dict[Line, Level]
    """By the name of the axis."""


class Judged(Contract):
    """How every run is evaluated."""

    split: Split = Split.TEST
    documents: Annotated[int, Field(ge=2)]
    few: Annotated[int, Field(ge=2)]
    """Of these, for destructive controls and harder gates."""
    screen: Id = "exact"
    conditions: tuple[Id, ...] = ()
    """Empty for all."""
    batch: Annotated[int, Field(ge=2)] = 32


class Compared(Contract):
    """How variants are compared with the baseline."""

    confidence: Annotated[float, Field(gt=0, lt=1)]
    resamples: Annotated[int, Field(ge=100)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    correction: Literal["holm", "bonferroni"]
    """Of the p-values of one measure, over all variants but the baseline."""
    headline: Line = "oracle.owner_recall"
    """The measure that the report orders variants by, and sets against cost."""


class ShortForm(Contract):
    """A screen of minutes a run."""

    start: Line | None = None
    """A trained model that every run starts from, as far as it fits."""
    settings: tuple[Line, ...]
    """As `--set` takes them."""
    judged: Judged | None = None


class Design(Contract):
    """A screen before it is compiled."""

    preset: Line
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]
    axes: Annotated[tuple[Axis, ...], Field(min_length=1)]
    interactions: tuple[Interaction, ...] = ()
    judged: Judged
    compared: Compared
    short: ShortForm | None = None

    @model_validator(mode="after")
    def _distinct(self) -> "Design":
        names = [axis.name for axis in self.axes]
        if len(set(names)) < len(names) or len(set(self.seeds)) < len(self.seeds):
            raise ValueError("axes have different names, and seeds are different numbers")
        return self


def design_names() -> list[str]:
    files = resources.files("pdt.screen.designs").iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def load_design(preset: str, file: Path | None = None) -> Design:
    """Of a file, or that of the package for the preset."""
    if file is not None:
        where = str(file)
        try:
            tree = parse_yaml(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, NotParsed) as error:
            raise UsageError(f"{file} cannot be read as YAML: {error}.\nCorrect it.") from error
    elif preset in design_names():
        where = f"the design of {preset}"
        text = (resources.files("pdt.screen.designs") / f"{preset}.yaml").read_text("utf-8")
        tree = yaml.safe_load(text)
    else:
        raise UsageError(
            f"There is no design of a screen for the preset {preset!r}.\n"
            f"Presets with one: {', '.join(design_names())}. Give your own with --design FILE."
        )
    try:
        return Design.model_validate(tree)
    except ValidationError as error:
        lines = [
            f"  {'.'.join(map(str, problem['loc'])) or 'design'}: {problem['msg']}"
            for problem in error.errors()[:10]
        ]
        raise UsageError("\n".join([f"{where} is no design of a screen.", *lines])) from error
