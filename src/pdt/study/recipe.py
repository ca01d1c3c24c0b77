"""A study as data: which corpora, which trunk, which runs, how many seeds.

Paper: §6, §7.
"""

from collections.abc import Sequence
from importlib import resources
from itertools import pairwise
from typing import Annotated

import yaml
from pydantic import Field, model_validator

from pdt.config import Count, Strict
from pdt.errors import UsageError
from pdt.evaluation.protocol.settings import REPEATS
from pdt.terms import NotesCondition, Split

CONDITIONS = (NotesCondition.BUS, NotesCondition.SELF_ONLY)

Part = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class CorpusRecipe(Strict):
    """One call of `pdt chronicle write`, or of `pdt corpus write`."""

    texts: bool = False
    """Real prose that `pdt corpus take` has put in `.cache/texts`, instead of Chronicle."""

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
    bits: str = "1,2,3"
    """What a word of each lane tells, as `--bits` takes it."""
    beside: Part | None = None
    """Records of which every step also takes documents, so that lanes keep what they know."""


class Phase(Strict):
    """One run of training, from where the phase before it ended."""

    records: Part
    settings: tuple[str, ...] = ()
    """Beside the recipe's own, as `--set` takes them."""
    together: bool = False
    """All lanes share one stack; the next phase that does not begins with a copy for each."""
    before_notes: bool = False
    """No lane reads a note yet: one run that bus and control both go on from."""


class Recipe(Strict):
    """Everything that a study does, and nothing about where."""

    preset: str
    settings: tuple[str, ...] = ()
    """Of every run, as `--set` takes them."""
    corpora: dict[Part, CorpusRecipe]
    records: dict[Part, tuple[Part, ...]]
    """Compiled corpora, each of one or more of those above."""
    trunk: TrunkRecipe | None = None
    pretrained: str | None = None
    """The decoder file whose trunk is taken as it is, where none is adapted."""
    drill: DrillRecipe | None = None
    begin: dict[NotesCondition, str] = Field(default_factory=dict)
    """Trained models of the package that runs go on from, where trunk and drill are left out."""
    times_nano: Annotated[float, Field(gt=0)] = 1.0
    """How many times as long as nano's a document takes; how the time left is told."""
    keeps_states: bool = True
    """Training documents are read through the trunk once, and its states kept for all runs."""
    phases: dict[Part, Phase] = Field(min_length=1)
    """Training, in this order."""
    seeds: Count
    judged_on: Part
    documents: Count
    """Test documents of each verdict."""
    conditions: tuple[str, ...] = ()
    """Those of a verdict; none are all of them in the first seed, and later what gates read."""
    repeats: Count = REPEATS
    """How often a verdict times each way of writing."""
    screen: str = "exact"
    """What judges them, as `--screen` takes it."""

    @model_validator(mode="after")
    def _begins_somewhere(self) -> "Recipe":
        starts = (self.trunk is not None and self.drill is not None, self.pretrained is not None)
        if sum((*starts, bool(self.begin))) != 1 or set(self.begin) not in (set(), set(CONDITIONS)):
            raise ValueError(
                "a study begins with trunk and drill, with a pretrained decoder, or with a model "
                "for each notes condition"
            )
        phases = list(self.phases.values())
        if phases[-1].together or phases[-1].before_notes:
            raise ValueError("the last phase gives every lane a stack of its own, and notes")
        if any(a.before_notes < b.before_notes for a, b in pairwise(phases)):
            raise ValueError("phases before notes come before all others")
        return self

    @property
    def first(self) -> Phase:
        return next(iter(self.phases.values()))

    @property
    def before_notes(self) -> dict[str, Phase]:
        return {name: phase for name, phase in self.phases.items() if phase.before_notes}

    @property
    def with_notes(self) -> dict[str, Phase]:
        return {name: phase for name, phase in self.phases.items() if not phase.before_notes}

    def settings_of(self, phase: Phase) -> tuple[str, ...]:
        """Every setting of a phase's run but its notes condition and where things lie."""
        shared = ("lanes.shared=true",) if phase.together else ()
        return (*self.settings, *shared, *phase.settings)


def load_recipe(name: str, settings: Sequence[str] = ()) -> Recipe:
    """A recipe of the package by its name, with `settings` of every run over its own."""
    files = resources.files("pdt.study").iterdir()
    recipes = {f.name.removesuffix(".yaml"): f for f in files if f.name.endswith(".yaml")}
    if name not in recipes:
        raise UsageError(f"There is no study {name!r}.\nStudies: {', '.join(sorted(recipes))}.")
    recipe = Recipe.model_validate(yaml.safe_load(recipes[name].read_text(encoding="utf-8")))
    return recipe.model_copy(update={"settings": (*recipe.settings, *settings)})
