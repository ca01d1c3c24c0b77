"""A study as data: which corpora, which trunk, which runs, how many seeds.

Paper: §6, §7.
"""

from importlib import resources
from typing import Annotated

import yaml
from pydantic import Field

from pdt.config import Count, Strict
from pdt.errors import UsageError
from pdt.terms import Split

Part = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class CorpusRecipe(Strict):
    """One call of `pdt chronicle write`."""

    split: Split
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
    corpus_seed: int
    corpora: dict[Part, CorpusRecipe]
    records: dict[Part, tuple[Part, ...]]
    """Compiled corpora, each of one or more of those above."""
    trunk: TrunkRecipe
    drill: DrillRecipe
    train: Part
    """The records of the curriculum."""
    seeds: Count
    judged_on: Part
    documents: Count
    """Test documents of each verdict."""


def load_recipe(name: str) -> Recipe:
    """A recipe of the package by its name."""
    found = resources.files("pdt.study") / f"{name}.yaml"
    if not found.is_file():
        raise UsageError(f"There is no study {name!r}.")
    return Recipe.model_validate(yaml.safe_load(found.read_text(encoding="utf-8")))
