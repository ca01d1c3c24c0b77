"""What an evaluation is asked for, and its opening: in the process that was asked, or in a worker.

Paper: §7.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pdt.errors import UsageError
from pdt.evaluation.generate.checkpoints import check_budgets, load_for_evaluation
from pdt.evaluation.generate.runs import Runs
from pdt.evaluation.protocol.conditions import Weights
from pdt.evaluation.protocol.scope import decided_settings
from pdt.evaluation.protocol.settings import MOST_DOCUMENTS, EvaluationSettings
from pdt.evaluation.screens.screen import ScreenChoice
from pdt.records.batch import RecordShards
from pdt.terms import NotesCondition, Split


@dataclass(frozen=True)
class Asked:
    """An evaluation in words, before a file of it is opened."""

    records: Path
    models: Mapping[Weights, Path]
    """The bus checkpoint, and its control where there is one."""
    split: Split = Split.TEST
    screens: ScreenChoice = field(default_factory=ScreenChoice)
    documents: int | None = None
    """None for all there are, at most `MOST_DOCUMENTS`."""
    alone: bool = False
    """One model under whatever notes condition it has, as a variant of a screen is judged."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Fields of EvaluationSettings that are not to have their defaults."""


def open_runs(asked: Asked) -> tuple[Runs, dict[str, str]]:
    """Corpus and checkpoints, and the digest of each checkpoint by its role."""
    shards = RecordShards(asked.records, split=asked.split)
    models, digests = {}, {}
    for weights, path in asked.models.items():
        condition = None if asked.alone else NotesCondition(weights.value)
        loaded = load_for_evaluation(path, condition)
        models[weights], digests[weights.value] = loaded
    if Weights.SELF_ONLY in asked.models:
        check_budgets(asked.models[Weights.BUS], asked.models[Weights.SELF_ONLY])
    settings = EvaluationSettings.model_validate(
        {
            **asked.settings,
            "documents": _documents(shards, asked.documents),
            "screen": asked.screens.name,
            **decided_settings(shards.config, models[Weights.BUS].config),
        }
    )
    # Memory takes processes of their own, and no gate reads it.
    checkpoint = None if asked.alone else asked.models[Weights.BUS]
    return Runs(shards, models, settings, checkpoint=checkpoint), digests


def _documents(shards: RecordShards, asked: int | None) -> int:
    """How many there will be: asking for more than there are is a mistake, not a wish."""
    there = len(shards)
    if there < max(2, asked or 2):
        raise UsageError(
            f"{shards.directory} holds {there} documents of the split {shards.split}; "
            f"{asked or 'two or more'} are asked for.\n"
            "Write a larger corpus of that split and compile it, or give --split or --documents."
        )
    return asked or min(there, MOST_DOCUMENTS)
