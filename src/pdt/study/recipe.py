"""A study as data: which corpora, which trunk, which runs, how many seeds.

Paper: §6, §7.
"""

from importlib import resources
from typing import Annotated

import yaml
from pydantic import Field, model_validator

from pdt.config import Count, Strict
from pdt.errors import UsageError
from pdt.terms import NotesCondition, Split

CONDITIONS = (NotesCondition.BUS, NotesCondition.SELF_ONLY)

Part = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class CorpusRecipe(Strict):
    """One call of `pdt chronicle write`."""

    split: Split
    seed: int
    count: Count
    dials: tuple[str, ...] = ()
    """As `--set` takes them."""


class TrunkRecipe(Strict):
    """The adaptation of the pretrained trunk."""

    records: Part
    steps: Count


class DrillRecipe(Strict):
    """The bus's first words."""

    corpus: Part
    """Whose sentences the drill is made of."""
    steps: Count


class Recipe(Strict):
    """Everything that a study does, and nothing about where."""

    preset: str
    settings: tuple[str, ...] = ()
    """Of every run, as `--set` takes them."""
    corpora: dict[Part, CorpusRecipe]
    records: dict[Part, tuple[Part, ...]]
    """Compiled corpora, each of one or more of those above."""
    trunk: TrunkRecipe | None = None
    drill: DrillRecipe | None = None
    begin: dict[NotesCondition, str] = Field(default_factory=dict)
    """Trained models of the package that runs go on from, where trunk and drill are left out."""
    train: Part
    """The records of the curriculum."""
    seeds: Count
    judged_on: Part
    documents: Count
    """Test documents of each verdict."""

    @model_validator(mode="after")
    def _begins_somewhere(self) -> "Recipe":
        from_nothing = self.trunk is not None and self.drill is not None
        if from_nothing == bool(self.begin) or (self.begin and set(self.begin) != set(CONDITIONS)):
            raise ValueError(
                "a study begins with trunk and drill, or with a model for each notes condition"
            )
        return self


def load_recipe(name: str) -> Recipe:
    """A recipe of the package by its name."""
    files = resources.files("pdt.study").iterdir()
    recipes = {f.name.removesuffix(".yaml"): f for f in files if f.name.endswith(".yaml")}
    if name not in recipes:
        raise UsageError(f"There is no study {name!r}.\nStudies: {', '.join(sorted(recipes))}.")
    return Recipe.model_validate(yaml.safe_load(recipes[name].read_text(encoding="utf-8")))
